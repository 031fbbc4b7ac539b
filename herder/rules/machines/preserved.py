"""What a machine takes back: the DataVolumes and the memory that its pool kept for it when it was scaled in (seed 003, state
preservation)."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachine
from herder.api.memory import SavedMemory
from herder.api.meta import OwnerReference
from herder.api.reading import part, text
from herder.rules.instances.pool_label import is_pool
from herder.rules.machines.children import owner_reference
from herder.rules.plans import Document, plain


class TakeBack(msgspec.Struct, frozen=True):
    """One patch of its owners. A list is replaced as a whole, so it is of this very state of it."""

    name: str
    uid: str
    patch: Document
    kind: str = "DataVolume"


def pool_of(machine: VirtualMachine) -> OwnerReference | None:
    """The pool that manages the machine; None where nobody does, or somebody else."""
    owner = machine.controller
    return owner if is_pool(owner) else None


def is_preserved(machine: VirtualMachine, volume: DataVolume | PersistentVolumeClaim) -> bool:
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
    return TakeBack(volume.name, volume.uid, {"metadata": _owned(document, volume)})


def take_memory_back(document: Document, claim: PersistentVolumeClaim, record: SavedMemory) -> TakeBack:
    """In the same write it becomes the memory of this machine: the one that it was saved from is gone."""
    own = msgspec.structs.replace(record, machine=text(part(document, "metadata"), "uid"))
    annotations = {labels.MEMORY: msgspec.json.encode(plain(own)).decode()}
    patch = {"metadata": {**_owned(document, claim), "annotations": annotations}}
    return TakeBack(claim.name, claim.uid, patch, "PersistentVolumeClaim")


def _owned(document: Document, volume: DataVolume | PersistentVolumeClaim) -> Document:
    owners = [owner_reference(document), *(plain(owner) for owner in volume.metadata.owner_references or ())]
    return {"ownerReferences": owners, "resourceVersion": volume.metadata.resource_version}


def was_kept(machine: VirtualMachine) -> bool:
    """Whether its pool has made it to go on from memory that it kept: of its first instance, and of no other."""
    started = machine.status.last_instance_uid if machine.status else None
    return labels.RESUME_FROM in machine.annotations and not started
