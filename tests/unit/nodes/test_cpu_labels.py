"""A node's labels say what its processor is, and no longer what it was."""

from herder.api import labels
from herder.nodes.node import NodeSettings, cpu_labels, label_changes, node_labels, written_cpu
from herder.nodes.runtimes.base import Host, HostCPU
from herder.nodes.runtimes.simulated.runtime import CPU

SETTINGS = NodeSettings(name="n1")


def host(runtime: str = "qemu", cpu: HostCPU = CPU) -> Host:
    return Host(runtime, "10.0", "kvm", cpu, ("pc-q35-10.0",))


def test_labels_can_be_read_back() -> None:
    assert written_cpu(cpu_labels(CPU)) == CPU
    assert written_cpu({}) is None


def test_a_node_that_is_right_is_left_alone() -> None:
    assert label_changes(SETTINGS, host(), node_labels(SETTINGS, host()) | {"zone": "north"}) == {}


def test_what_the_processor_has_no_more_is_taken_back_and_what_others_wrote_stays() -> None:
    known = node_labels(SETTINGS, host()) | {labels.CPU_FEATURE + "gone": "true", "zone": "north", labels.MIGRATABILITY_LEVEL: "50"}
    del known[labels.CPU_FEATURE + "aes"]
    assert label_changes(SETTINGS, host(), known) == {labels.CPU_FEATURE + "aes": "true", labels.CPU_FEATURE + "gone": None}


def test_a_simulated_node_keeps_the_processor_that_is_written_for_it() -> None:
    written = {labels.HOST_MODEL_CPU + "EPYC": "true", labels.CPU_FEATURE + "sse4a": "true"}
    changes = label_changes(SETTINGS, host("simulated"), written)
    assert not [name for name in changes if name.startswith(labels.CPU_LABELS)]
    assert changes[labels.SCHEDULABLE] == "true"


def test_a_simulated_node_without_one_gets_one() -> None:
    assert cpu_labels(CPU).items() <= label_changes(SETTINGS, host("simulated"), {}).items()
