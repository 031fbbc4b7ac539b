"""What is filled in where a user says nothing."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.defaulting import default
from herder.api.validation import problems_of

Json = dict[str, Any]


def _instance(**spec: Any) -> Json:
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "a"}, "spec": spec}


def _defaulted(**spec: Any) -> Json:
    document = _instance(**spec)
    default(document)
    return document["spec"]


def test_an_instance_without_anything_gets_one_core_and_512_mebibytes() -> None:
    domain = _defaulted(domain={})["domain"]
    assert domain["cpu"] == {"sockets": 1, "cores": 1, "threads": 1, "model": "host-model"}
    assert domain["memory"] == {"guest": "512Mi"}


def test_memory_is_what_was_asked_of_the_node() -> None:
    assert _defaulted(domain={"resources": {"requests": {"memory": "2Gi"}}})["domain"]["memory"]["guest"] == "2Gi"
    assert _defaulted(domain={"resources": {"limits": {"memory": "3Gi"}}})["domain"]["memory"]["guest"] == "3Gi"


def test_what_is_said_stays_as_it_was_said() -> None:
    spec = _defaulted(domain={"cpu": {"cores": 4, "model": "EPYC"}, "memory": {"guest": "1Gi"}}, terminationGracePeriodSeconds=0)
    assert (spec["domain"]["cpu"]["cores"], spec["domain"]["cpu"]["model"]) == (4, "EPYC")
    assert spec["domain"]["memory"] == {"guest": "1Gi"}
    assert spec["terminationGracePeriodSeconds"] == 0


def test_every_volume_becomes_a_disk_except_the_kernel() -> None:
    volumes = [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}, {"name": "kernel", "persistentVolumeClaim": {"claimName": "k"}}]
    domain = {"firmware": {"kernelBoot": {"volume": {"name": "kernel"}}}}
    disks = _defaulted(domain=domain, volumes=volumes)["domain"]["devices"]["disks"]
    assert disks == [{"name": "root", "disk": {"bus": "virtio"}}]


def test_each_kind_of_drive_has_its_own_bus() -> None:
    disks: list[Json] = [
        {"name": "a"},
        {"name": "b", "cdrom": {}},
        {"name": "c", "lun": {}},
        {"name": "d", "disk": {"bus": "sata"}},
    ]
    done = _defaulted(domain={"devices": {"disks": disks}})["domain"]["devices"]["disks"]
    assert [next(value["bus"] for value in disk.values() if isinstance(value, dict)) for disk in done] == [
        "virtio",
        "sata",
        "scsi",
        "sata",
    ]


def test_a_guest_gets_a_card_on_the_network_of_its_pod_unless_it_wants_none() -> None:
    spec = _defaulted(domain={})
    assert spec["networks"] == [{"name": "default", "pod": {}}]
    assert spec["domain"]["devices"]["interfaces"] == [{"name": "default", "masquerade": {}, "model": "virtio"}]
    assert "networks" not in _defaulted(domain={"devices": {"autoattachPodInterface": False}})


def test_other_kinds_are_left_alone() -> None:
    machine: Json = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": {"running": True}}
    default(machine)
    assert machine["spec"] == {"running": True}
    pod: Json = {"apiVersion": "v1", "kind": "Pod"}
    default(pod)
    assert pod == {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    "spec",
    [
        {"domain": 5},
        {"domain": {"cpu": "two"}},
        {"domain": {"memory": "1Gi"}},
        {"domain": {"devices": []}},
        {"domain": {"devices": {"disks": {}}}, "volumes": [{"name": "a"}]},
        {"domain": {}, "networks": {}},
        {"domain": {"devices": {"interfaces": ""}}},
    ],
)
def test_a_value_of_the_wrong_type_is_left_for_the_schema_to_refuse(spec: Json) -> None:
    before = msgspec.json.encode(spec)
    after = _defaulted(**spec)
    assert _kept(msgspec.json.decode(before), after)


def _kept(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict) and before:
        return all(_kept(before[name], after.get(name)) for name in before)
    return before == after or (before == {} and isinstance(after, dict))


@given(st.sets(st.sampled_from(["a", "b", "c"])), st.sets(st.sampled_from(["a", "b", "c"])), st.booleans())
def test_a_completed_instance_has_no_problems_and_is_not_changed_again(volumes: set[str], shown: set[str], network: bool) -> None:
    document = _instance(
        domain={"devices": {"disks": [{"name": name} for name in sorted(shown & volumes)], "autoattachPodInterface": network}},
        volumes=[{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in sorted(volumes)],
    )
    default(document)
    once = repr(document)
    default(document)
    assert repr(document) == once
    assert problems_of(document) == []
