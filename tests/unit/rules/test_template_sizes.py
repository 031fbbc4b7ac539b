"""Templates of machines' disks that ask for more than the disks have."""

from typing import Any

import msgspec
import pytest

from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachine
from herder.rules.volumes.template_sizes import larger_size
from tests.unit.rules.machines import Json, later
from tests.unit.rules.volumes import claim, data_volume


def machine(uid: str = "m", *, deleted: bool = False, **spec: Any) -> VirtualMachine:
    template = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, **spec}}
    gone = {"deletionTimestamp": later(0)} if deleted else {}
    inner = {"running": True, "template": {"spec": {"domain": {}}}, "dataVolumeTemplates": [template]}
    return msgspec.convert({"metadata": {"name": "vm", "namespace": "shop", "uid": uid, **gone}, "spec": inner}, VirtualMachine)


def sized(size: str, form: str = "storage") -> Json:
    return {form: {"resources": {"requests": {"storage": size}}}}


def disk(owner: str = "m", kind: str = "VirtualMachine") -> DataVolume:
    made = data_volume()
    reference = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "vm", "uid": owner, "controller": True}
    made["metadata"]["ownerReferences"] = [reference]
    return msgspec.convert(made, DataVolume)


@pytest.mark.parametrize("form", ["storage", "pvc"])
def test_a_larger_size_is_asked_of_the_claim(form: str) -> None:
    assert larger_size(machine(**sized("2Gi", form)), disk(), claim()) == "2Gi"


@pytest.mark.parametrize("size", ["1Gi", "1024Mi", "512Mi"])
def test_the_same_or_a_smaller_size_is_not_acted_upon(size: str) -> None:
    assert larger_size(machine(**sized(size)), disk(), claim()) == ""


def test_a_template_without_a_size_asks_for_nothing() -> None:
    assert larger_size(machine(storage={}), disk(), claim()) == ""


@pytest.mark.parametrize(
    ("vm", "volume", "its"),
    [
        (machine(**sized("2Gi")), disk("another"), claim()),
        (machine(**sized("2Gi")), disk(kind="VirtualMachinePool"), claim()),
        (machine(**sized("2Gi")), disk(), claim(owner="another")),
        (machine(**sized("2Gi")), disk(), claim(owner="")),
        (machine(**sized("2Gi")), disk(), claim("Pending")),
        (machine(**sized("2Gi")), disk(), None),
        (None, disk(), claim()),
        (machine(deleted=True, **sized("2Gi")), disk(), claim()),
    ],
)
def test_only_claims_that_are_bound_and_the_machines_own_are_touched(
    vm: VirtualMachine | None, volume: DataVolume, its: PersistentVolumeClaim | None
) -> None:
    assert larger_size(vm, volume, its) == ""
