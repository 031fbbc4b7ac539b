"""Which DataVolumes a machine takes back from its pool, and which stay somebody else's."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.kinds import DataVolume
from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from tests.unit.rules.machines import NOW, Json, later, machine, machine_view

TEMPLATE: Json = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": {}}}
POOL: Json = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": "pool-1"}
SOMEBODY: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "notes", "uid": "notes-1"}


def preserved(*owners: Json, vm: str = "web", **metadata: Any) -> DataVolume:
    about = {"name": "disk", "namespace": "shop", "uid": "disk-1", "resourceVersion": "7", "labels": {labels.MACHINE_NAME: vm}}
    whole = {"metadata": {**about, "ownerReferences": list(owners), **metadata}, "spec": TEMPLATE["spec"]}
    return msgspec.convert({**whole, "status": {"phase": "Succeeded"}}, DataVolume)


def plan(volume: DataVolume, *, owner: Json | None = None, deleted: bool = False, **spec: Any) -> MachinePlan:
    document = machine(dataVolumeTemplates=[TEMPLATE], deleted=deleted, **spec)
    document["metadata"]["ownerReferences"] = [owner or {**POOL, "controller": True}]
    return plan_machine(MachineSnapshot(machine_view(document), document, None, {"disk": volume}), NOW)


@pytest.mark.parametrize("strategy", ["Always", "Halted"])
def test_a_machine_takes_back_what_its_pool_kept_for_it(strategy: str) -> None:
    kept = {**POOL, "blockOwnerDeletion": False}
    made = plan(preserved(SOMEBODY, kept), runStrategy=strategy)
    (taken,) = made.take_back
    assert (taken.name, taken.uid) == ("disk", "disk-1")
    assert taken.patch["metadata"]["resourceVersion"] == "7"
    own, *others = taken.patch["metadata"]["ownerReferences"]
    assert (own["uid"], own["controller"]) == ("machine-1", True)
    assert others == [SOMEBODY, kept], "the pool lets go of it itself: the machine may be gone already"
    assert made.create_instance is None, "not before the volume is its own"
    assert not made.create_data_volumes
    assert "reason" not in made.status
    assert "took back DataVolume disk" in made.events[0].message


def test_an_instance_is_made_once_the_volume_is_its_own() -> None:
    own = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "machine-1", "controller": True}
    made = plan(preserved(own, POOL))
    assert made.take_back == ()
    assert made.create_instance is not None


@pytest.mark.parametrize(
    ("volume", "owner"),
    [
        pytest.param(preserved({**SOMEBODY, "controller": True}, POOL), None, id="somebody manages it"),
        pytest.param(preserved({**POOL, "controller": True}), None, id="the pool itself manages it"),
        pytest.param(preserved(POOL, vm="web-2"), None, id="kept for another machine"),
        pytest.param(preserved(POOL, labels={}), None, id="of no machine"),
        pytest.param(preserved({**POOL, "uid": "pool-0"}), None, id="kept by an earlier pool of that name"),
        pytest.param(preserved(SOMEBODY), None, id="kept by nobody"),
        pytest.param(preserved(), None, id="without owners"),
        pytest.param(preserved(POOL, deletionTimestamp=later(0)), None, id="about to go"),
        pytest.param(preserved(POOL), POOL, id="the pool does not manage the machine"),
        pytest.param(preserved(POOL), {**POOL, "apiVersion": "pool.example.com/v1", "controller": True}, id="another's pool"),
        pytest.param(preserved(POOL), {**POOL, "kind": "ConfigMap", "controller": True}, id="no pool"),
    ],
)
def test_anything_else_stays_somebody_elses(volume: DataVolume, owner: Json | None) -> None:
    made = plan(volume, owner=owner)
    assert made.take_back == ()
    assert made.create_instance is None
    assert (made.status["printableStatus"], made.status["reason"]) == ("DataVolumeError", "VolumeNotOwned")


def test_a_machine_that_goes_takes_nothing_back() -> None:
    assert plan(preserved(POOL), deleted=True).take_back == ()
