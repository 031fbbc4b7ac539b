"""Which DataVolumes a machine takes back: those that its pool kept for it when it was scaled in (seed 003, state preservation)."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.kinds import DataVolume, VirtualMachine
from herder.api.meta import OwnerReference
from herder.rules.instances.pool_label import is_pool
from herder.rules.machines.children import owner_reference
from herder.rules.plans import Document, plain


class TakeBack(msgspec.Struct, frozen=True):
    """One patch of the DataVolume's owners. A list is replaced as a whole, so it is of this very state of it."""

    name: str
    uid: str
    patch: Document


def pool_of(machine: VirtualMachine) -> OwnerReference | None:
    """The pool that manages the machine; None where nobody does, or somebody else."""
    owner = machine.controller
    return owner if is_pool(owner) else None


def is_preserved(machine: VirtualMachine, volume: DataVolume) -> bool:
    """Nobody manages it, the machine's own pool keeps it, and it was this machine's. The uid of the pool: one that was made again
    under its name does not have what the one before it kept."""
    pool = pool_of(machine)
    if pool is None or volume.controller is not None or volume.being_deleted:
        return False
    kept = any(owner.uid == pool.uid for owner in volume.metadata.owner_references or ())
    return kept and volume.labels.get(labels.MACHINE_NAME) == machine.name


def take_back(document: Document, volume: DataVolume) -> TakeBack:
    """The machine becomes its controller, and all owners stay. The pool lets go of it once it sees that the machine lives: one that
    is gone by the time of this write, which its own controller may not know yet, takes nothing with it."""
    owners = [owner_reference(document), *(plain(owner) for owner in volume.metadata.owner_references or ())]
    patch = {"metadata": {"ownerReferences": owners, "resourceVersion": volume.metadata.resource_version}}
    return TakeBack(volume.name, volume.uid, patch)
