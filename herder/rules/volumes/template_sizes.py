"""The template of a machine's disk asks for more than the disk has: its claim is to ask for that.

The DataVolume says what its volume was made from, and stays as it is. Only the size is followed, and only upwards: what else a
template says is about disks that are made.
"""

from __future__ import annotations

from herder.api import registry
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachine
from herder.api.kinds.data_volume import ClaimSpec
from herder.api.quantity import parse_quantity
from herder.rules.volumes.importer import requested


def larger_size(machine: VirtualMachine | None, volume: DataVolume, claim: PersistentVolumeClaim | None) -> str:
    """What the claim is to ask for, as the template writes it; empty where it asks for enough, or is not to be touched. One that is
    not bound cannot ask for more yet."""
    if machine is None or claim is None or not _owns(machine, volume, claim):
        return ""
    if machine.being_deleted or volume.being_deleted or claim.being_deleted or claim.status.phase != "Bound":
        return ""
    for template in machine.spec.data_volume_templates or ():
        if template.metadata.name == volume.name:
            size = _size(template.spec.pvc or template.spec.storage)
            return size if size and parse_quantity(size).value() > requested(claim) else ""
    return ""


def _owns(machine: VirtualMachine, volume: DataVolume, claim: PersistentVolumeClaim) -> bool:
    """The machine is the DataVolume's controller, and the DataVolume the claim's: by identity, not by name."""
    owner = volume.controller
    right = owner is not None and owner.kind == registry.MACHINE.kind and owner.uid == machine.uid
    return right and claim.controller_uid == volume.uid


def _size(spec: ClaimSpec | None) -> str:
    requests = (spec.resources.requests if spec is not None and spec.resources is not None else None) or {}
    return str(requests.get("storage", ""))
