"""DataVolumes that a machine makes again because their templates changed and somebody asked for that."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.kinds import DataVolume
from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from tests.unit.rules.machines import NOW, Json, data_volume, instance, instance_view, machine, machine_view

SMALL: Json = {"resources": {"requests": {"storage": "1Gi"}}}
LARGE: Json = {"resources": {"requests": {"storage": "2Gi"}}}
OLD: Json = {"source": {"http": {"url": "https://images.example/old"}}, "pvc": SMALL}
NEW: Json = {"source": {"http": {"url": "https://images.example/new"}}, "pvc": SMALL}


def volume(spec: Json, *, owner: str = "machine-1", going: bool = False) -> DataVolume:
    made = msgspec.to_builtins(data_volume("disk", owner=owner)) | {"spec": spec}
    if going:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert(made, DataVolume)


def plan(is_: DataVolume | None, wanted: Json, asked: str = "disk", child: Json | None = None, **spec: Any) -> MachinePlan:
    document = machine(None, dataVolumeTemplates=[{"metadata": {"name": "disk"}, "spec": wanted}], **spec)
    document["metadata"]["annotations"] = {labels.REPROVISION: asked} if asked else {}
    view = instance_view(child) if child else None
    return plan_machine(MachineSnapshot(machine_view(document), document, view, {"disk": is_} if is_ else {}), NOW)


def test_a_volume_whose_template_changed_goes_before_the_next_start() -> None:
    made = plan(volume(OLD), NEW)
    assert [one.name for one in made.delete_data_volumes] == ["disk"]
    assert made.create_instance is None
    assert "disk" in made.events[0].message


def test_nothing_starts_before_it_is_gone_and_it_is_asked_for_once() -> None:
    made = plan(volume(OLD, going=True), NEW)
    assert (made.delete_data_volumes, made.create_instance, made.events) == ((), None, ())


def test_it_is_made_again_from_the_new_template_and_then_the_machine_starts() -> None:
    gone = plan(None, NEW)
    assert [one["spec"] for one in gone.create_data_volumes] == [NEW]
    back = plan(volume(NEW), NEW)
    assert back.delete_data_volumes == ()
    assert back.create_instance is not None


def test_nothing_is_wiped_while_the_guest_has_it_open() -> None:
    assert plan(volume(OLD), NEW, child=instance("Running")).delete_data_volumes == ()


@pytest.mark.parametrize(
    ("is_", "wanted", "asked"),
    [
        pytest.param(volume(OLD), NEW, "", id="nobody asked"),
        pytest.param(volume(OLD), NEW, "other", id="another one was asked for"),
        pytest.param(volume(OLD), OLD | {"pvc": LARGE}, "disk", id="it only grows"),
        pytest.param(volume(OLD), OLD, "disk", id="it is as its template says"),
        pytest.param(volume(OLD, owner="somebody"), NEW, "disk", id="it belongs to somebody else"),
    ],
)
def test_other_volumes_stay(is_: DataVolume, wanted: Json, asked: str) -> None:
    assert plan(is_, wanted, asked).delete_data_volumes == ()


def test_a_smaller_disk_is_another_disk() -> None:
    assert plan(volume(OLD | {"pvc": LARGE}), OLD).delete_data_volumes != ()


@pytest.mark.parametrize(
    ("is_", "asked", "done"),
    [
        pytest.param(volume(NEW), "disk", True, id="it is as its template says"),
        pytest.param(volume(NEW), "disk,dropped", True, id="another one is no longer in the template"),
        pytest.param(volume(OLD), "disk", False, id="it is still the old one"),
        pytest.param(volume(OLD, going=True), "disk", False, id="it goes"),
        pytest.param(None, "disk", False, id="it is to be made"),
        pytest.param(volume(NEW, owner="somebody"), "disk", False, id="it has not taken it back yet"),
        pytest.param(volume(NEW), "", False, id="nobody asked"),
    ],
)
def test_what_is_made_again_is_asked_for_no_longer(is_: DataVolume | None, asked: str, done: bool) -> None:
    """A template that somebody changes by hand later would wipe the disk otherwise."""
    assert plan(is_, NEW, asked).reprovisioned == done
