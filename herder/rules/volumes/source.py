"""What a DataVolume copies: whether it may, and whether it can now."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolume, PersistentVolumeClaim
from herder.api.kinds import DataVolume
from herder.api.kinds.data_volume import DataVolumePhase
from herder.api.quantity import parse_quantity
from herder.api.storage import ALLOW_CLONE
from herder.rules.volumes.importer import capacity_of
from herder.rules.volumes.provision import is_ours, storage_of
from herder.rules.volumes.status import Shown


class Source(msgspec.Struct, frozen=True):
    """The claim that is copied, as far as it is there."""

    namespace: str
    name: str
    claim: PersistentVolumeClaim | None = None
    volume: PersistentVolume | None = None
    # The DataVolume that fills it, where there is one.
    filled_by: DataVolume | None = None
    # A pod that may write to it.
    used_by: str = ""


def source_problem(volume: DataVolume, source: Source, target: PersistentVolume | None) -> Shown | None:
    """`target` is the volume that the copy goes to, once it is there."""
    bound = target is not None
    phase: DataVolumePhase = "PVCBound" if bound else "Pending"
    name = f"PersistentVolumeClaim {source.namespace}/{source.name}"
    # Before anything is told of it: whether it exists is the business of its namespace.
    if not is_allowed(volume, source):
        why = f"{name} may be copied by other namespaces only if its annotation {ALLOW_CLONE} names them ({volume.namespace})"
        return Shown(phase, reasons.SOURCE_FORBIDDEN, why, bound=bound)
    if source.claim is None:
        return Shown(phase, reasons.SOURCE_NOT_FOUND, f"waits for {name}, which does not exist", bound=bound)
    if source.claim.status.phase != "Bound" or source.volume is None:
        return Shown(phase, reasons.SOURCE_NOT_BOUND, f"waits for {name} to be bound", bound=bound)
    if source.filled_by is not None and (source.filled_by.status is None or source.filled_by.status.phase != "Succeeded"):
        return Shown(phase, reasons.SOURCE_NOT_BOUND, f"waits for DataVolume {source.name} to be filled", bound=bound)
    if is_growing(source.claim):
        return Shown(phase, reasons.SOURCE_IN_USE, f"waits until {name} has grown", bound=bound)
    if source.used_by:
        why = f"waits until {name} is no longer in use by pod {source.used_by}: a copy of what is being written would be broken"
        return Shown(phase, reasons.SOURCE_IN_USE, why, bound=bound)
    return _unfit(volume, source, source.volume, target, name)


def is_growing(claim: PersistentVolumeClaim) -> bool:
    """At this moment; one that cannot grow now keeps nobody waiting."""
    on = {one.type for one in claim.status.conditions if one.status == "True"}
    return "Resizing" in on and "ControllerResizeError" not in on


def is_allowed(volume: DataVolume, source: Source) -> bool:
    """Of the own namespace always; of another one only where the claim itself names the one that wants to copy it."""
    if source.namespace == volume.namespace:
        return True
    written = source.claim.annotations.get(ALLOW_CLONE, "") if source.claim is not None else ""
    return bool({"*", volume.namespace} & {one.strip() for one in written.split(",")})


def _unfit(volume: DataVolume, source: Source, found: PersistentVolume, target: PersistentVolume | None, name: str) -> Shown | None:
    if not is_ours(found):
        why = f"PersistentVolume {found.name} of {name} was not made by our provisioner, and cannot be read"
        return Shown("Failed", reasons.CLONE_FAILED, why, bound=target is not None)
    size = capacity_of(target) if target is not None else _asked(volume)
    if size is not None and size < capacity_of(found):
        why = f"a copy of {name} takes {found.spec.capacity.get('storage')}, and spec asks for less"
        return Shown("Failed", reasons.VOLUME_TOO_SMALL, why, bound=target is not None)
    if target is not None and storage_of(target) != storage_of(found):
        why = f"{name} is in storage {storage_of(found)}, and the StorageClass puts the copy into {storage_of(target)}"
        return Shown("Failed", reasons.CLONE_FAILED, why, bound=True)
    return None


def _asked(volume: DataVolume) -> int | None:
    spec = volume.spec.pvc or volume.spec.storage
    requests = (spec.resources.requests if spec and spec.resources else None) or {}
    return parse_quantity(requests["storage"]).value() if "storage" in requests else None
