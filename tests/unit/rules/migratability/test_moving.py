"""A guest that runs is moved only to nodes that have the processor with which it was started."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.kinds.domain import CPUFeature
from herder.api.kinds.instance import StartedCPU
from herder.api.node_selector import NodeSelector
from herder.rules.migratability.moving import missing, nobody_has, target_requirements
from tests.unit.rules.migratability.nodes import Labels, cpu, node

STARTED = StartedCPU(
    model="Skylake",
    vendor="Intel",
    features=(
        CPUFeature(name="avx2", policy="require"),
        CPUFeature(name="pcid"),
        CPUFeature(name="tsx", policy="disable"),
        CPUFeature(name="magic", policy="force"),
    ),
)


def allowed(written: Labels, started: StartedCPU = STARTED) -> bool:
    term = {"matchExpressions": [msgspec.to_builtins(one) for one in target_requirements(started)]}
    return NodeSelector({"nodeSelectorTerms": [term]}).matches(written, "n")


def test_the_target_must_have_the_model_and_every_required_feature() -> None:
    assert allowed(cpu("Skylake", also=["avx2", "pcid"]))
    assert allowed(cpu("Icelake", also=["avx2", "pcid"], models=["Skylake"]))
    assert not allowed(cpu("Skylake", also=["avx2"]))
    assert not allowed(cpu("Haswell", also=["avx2", "pcid"]))


def test_the_target_must_not_be_of_another_vendor() -> None:
    assert not allowed(cpu("Skylake", also=["avx2", "pcid"], vendor="AMD"))
    assert allowed(cpu("Skylake", also=["avx2", "pcid"], vendor=""))


def test_what_a_node_lacks_is_named() -> None:
    assert missing(STARTED, node("a", cpu("Skylake", also=["avx2", "pcid"]))) == ()
    assert missing(STARTED, node("b", cpu("Haswell", also=["pcid"]))) == ("model Skylake", "avx2")
    assert missing(STARTED, node("c", cpu("Skylake", also=["avx2", "pcid"], vendor="AMD"))) == ("vendor Intel",)


def test_requirements_and_what_is_missing_agree() -> None:
    for written in (cpu("Skylake", also=["avx2", "pcid"]), cpu("Haswell"), cpu("Skylake", also=["avx2", "pcid"], vendor="Hygon")):
        assert allowed(written) == (not missing(STARTED, node("n", written)))


def test_a_guest_that_has_whatever_its_node_has_names_no_model() -> None:
    assert target_requirements(StartedCPU(model="host")) == ()
    assert target_requirements(StartedCPU()) == ()


def test_what_each_node_lacks_is_one_sentence_and_nothing_where_one_lacks_nothing() -> None:
    lacking = node("b", cpu("Haswell", also=["pcid"])), node("a", cpu("Skylake", also=["pcid"]))
    assert nobody_has(STARTED, lacking) == "a lacks avx2; b lacks model Skylake, avx2"
    assert nobody_has(STARTED, (*lacking, node("c", cpu("Skylake", also=["avx2", "pcid"])))) == ""
    many = [node(f"n{number}", cpu("Haswell", also=["avx2", "pcid"])) for number in range(7)]
    assert nobody_has(STARTED, many).endswith("n4 lacks model Skylake; and 2 more nodes lack something")


def test_a_node_takes_a_moved_guest_exactly_where_its_level_counts_it() -> None:
    """What a host-model guest has after its start is what the count assumes."""
    here = cpu("Skylake", ["avx2", "pcid"])
    started = StartedCPU(model="Skylake", vendor="Intel", features=(CPUFeature(name="avx2"), CPUFeature(name="pcid")))
    keys = {one.key for one in target_requirements(started) if one.operator == "In"}
    required = {labels.CPU_FEATURE + "avx2", labels.CPU_FEATURE + "pcid", labels.CPU_MODEL_MIGRATION + "Skylake"}
    assert keys == required
    assert allowed(here, started)
