"""Machines, disks and moves for which nothing can be done: each says so itself, and goes on once it can."""

from collections.abc import Callable

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.resources import PRIORITY_CLASSES, Resource
from tests.machines.herd import DATA_VOLUMES, INSTANCES, MACHINES, Herd, Json, condition

MIGRATIONS = resource_of(registry.MIGRATION)
BLANK: Json = {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}


async def _fails(herd: Herd, resource: Resource, name: str = "vm") -> Json:
    """The condition, once it is there."""

    async def look() -> Json:
        found = await herd.find(resource, name)
        assert found is not None
        shown = condition({"status": {}, **found}, "Synchronized")
        assert shown, found.get("status")
        return shown

    return await herd.eventually(look)


async def test_a_machine_whose_pod_is_refused_says_why_and_starts_once_it_can(herd: Herd, unique: Callable[..., str]) -> None:
    missing = unique("later")
    await herd.make(priorityClassName=missing)
    shown = await _fails(herd, INSTANCES)
    assert (shown["status"], shown["reason"]) == ("False", "Forbidden")
    assert missing in shown["message"]

    async def says_so() -> Json:
        machine = await herd.machine()
        assert missing in machine["status"].get("message", ""), machine["status"]
        return machine

    machine = await herd.eventually(says_so)
    assert machine["status"]["printableStatus"] == "Starting"
    assert machine["status"]["reason"] == "Forbidden"
    assert condition(machine, "Failure")["status"] == "True"
    assert missing in await herd.told("VirtualMachineInstance", "ReconcileFailed")
    told = [one for one in await herd.events("VirtualMachineInstance") if one[0] == "ReconcileFailed"]
    assert len(told) == 1

    (await herd.api.create(PRIORITY_CLASSES, {"metadata": {"name": missing}, "value": 7})).ok  # noqa: B018
    # Whoever cannot wait for the next try touches the object.
    await herd.annotate("vm", "example.com/look", "again", INSTANCES)
    await herd.running()

    async def says_no_more() -> bool:
        instance, machine = await herd.instance(), await herd.machine()
        assert instance is not None
        assert not condition(instance, "Synchronized")
        assert not condition(machine, "Failure")
        assert "reason" not in machine["status"], machine["status"]
        return True

    await herd.eventually(says_no_more)


async def test_a_machine_that_cannot_be_started_can_be_stopped_and_deleted(herd: Herd, unique: Callable[..., str]) -> None:
    await herd.make(priorityClassName=unique("never"))
    await _fails(herd, INSTANCES)
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.gone(INSTANCES, "vm")
    await herd.shows("Stopped", reason=None)
    await herd.delete("vm")
    await herd.gone(MACHINES, "vm")


async def test_a_data_volume_whose_importer_is_refused_says_why(herd: Herd, unique: Callable[..., str]) -> None:
    missing = unique("never")
    spec = {**BLANK, "source": {"http": {"url": "http://127.0.0.1:9/disk.img"}}, "priorityClassName": missing}
    (await herd.api.create(DATA_VOLUMES, {"metadata": {"name": "disk"}, "spec": spec}, herd.namespace)).ok  # noqa: B018
    shown = await _fails(herd, DATA_VOLUMES, "disk")
    assert missing in shown["message"]
    assert missing in await herd.told("DataVolume", "ReconcileFailed", "disk")


async def test_a_migration_whose_target_is_refused_says_why_and_goes_on_once_it_can(herd: Herd, unique: Callable[..., str]) -> None:
    soon_gone = unique("soon-gone")
    (await herd.api.create(PRIORITY_CLASSES, {"metadata": {"name": soon_gone}, "value": 7})).ok  # noqa: B018
    await herd.make(priorityClassName=soon_gone)
    await herd.running()
    (await herd.api.delete(PRIORITY_CLASSES, soon_gone, "")).ok  # noqa: B018
    move = {"metadata": {"name": "move"}, "spec": {"vmiName": "vm"}}
    (await herd.api.create(MIGRATIONS, move, herd.namespace)).ok  # noqa: B018
    shown = await _fails(herd, MIGRATIONS, "move")
    assert soon_gone in shown["message"]
    (await herd.api.create(PRIORITY_CLASSES, {"metadata": {"name": soon_gone}, "value": 7})).ok  # noqa: B018
    await herd.annotate("move", "example.com/look", "again", MIGRATIONS)

    async def has_moved() -> bool:
        found = await herd.find(MIGRATIONS, "move")
        assert found is not None
        assert found["status"]["phase"] == "Succeeded", found["status"]
        assert not condition(found, "Synchronized"), found["status"]
        return True

    await herd.eventually(has_moved)
