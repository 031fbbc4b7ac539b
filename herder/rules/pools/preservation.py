"""What stays of machines that are taken away, and who gets it back (seed 003, "State Preservation during Scale-in").

While a volume is preserved the pool is its owner. It becomes a second owner before the machine goes, so that there is no moment at
which nobody owns the volume; the machine that later gets the same name takes it back.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from herder.api import labels
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachinePool
from herder.api.kinds.pool import StatePreservation
from herder.rules.plans import Document, text_of
from herder.rules.pools.revisions import Revision
from herder.rules.pools.rollout import reprovisions, strategy_of
from herder.rules.pools.snapshot import OwnedVolume, PoolSnapshot
from herder.rules.pools.template import volume_changes


class Release(msgspec.Struct, frozen=True):
    """The pool is no owner of this volume any more; `references` are those that stay."""

    name: str
    uid: str
    resource_version: str
    references: tuple[Document, ...]
    # A claim with memory, and no DataVolume.
    memory: bool = False


def state_preservation(pool: VirtualMachinePool) -> StatePreservation:
    strategy = pool.spec.scale_in_strategy
    chosen = (strategy.opportunistic or strategy.proactive) if strategy is not None else None
    return (chosen.state_preservation if chosen is not None else None) or "Disabled"


def keeps_volumes(pool: VirtualMachinePool) -> bool:
    """Online keeps what Offline keeps, and memory."""
    return state_preservation(pool) != "Disabled"


def keeps_memory(pool: VirtualMachinePool) -> bool:
    return state_preservation(pool) == "Online"


def preserved_states(snapshot: PoolSnapshot) -> dict[str, tuple[OwnedVolume, ...]]:
    """Machines that are gone, with what is kept of them."""
    kept: dict[str, tuple[OwnedVolume, ...]] = {}
    for volume in snapshot.volumes:
        if not volume.controller and not volume.deleting and volume.machine:
            kept[volume.machine] = (*kept.get(volume.machine, ()), volume)
    return kept


def releases(snapshot: PoolSnapshot, preserving: Container[str]) -> tuple[Release, ...]:
    """Volumes of machines that stay after all: whoever began to preserve them was interrupted, or somebody changed their mind.
    `preserving`: uids of machines that are about to go and whose volumes stay."""
    return tuple(
        Release(
            volume.name,
            volume.uid,
            volume.resource_version,
            tuple(one for one in volume.references if one.get("uid") != snapshot.pool.uid),
            volume.memory,
        )
        for volume in snapshot.volumes
        if volume.controller
        and volume.controller in snapshot.living
        and volume.controller not in preserving
        and not volume.deleting
    )


def outlived(snapshot: PoolSnapshot) -> frozenset[str]:
    """uids of machines that would leave a volume behind if they went now."""
    return frozenset(volume.controller for volume in snapshot.volumes if volume.controller and not volume.deleting)


def was_ready_on(snapshot: PoolSnapshot) -> dict[str, str]:
    """By machine: the revision that it was ready on before it was taken away, for those whose volumes are kept. A machine that has
    taken them back says so itself (`readyRevision`)."""
    return {volume.machine: volume.ready_revision for volume in snapshot.volumes if volume.machine and volume.ready_revision}


def kept_memory(kept: Iterable[OwnedVolume]) -> OwnedVolume | None:
    return next((volume for volume in kept if volume.memory), None)


def changed_meanwhile(
    pool: VirtualMachinePool, kept: Iterable[OwnedVolume], target: Revision, known: Mapping[str, Revision], number: int
) -> tuple[str, ...]:
    """Volumes that were kept of a machine of another revision, whose template is another one by now, where that is to be seen on
    disks: the machine would come back with the old image and the new revision. Of what nobody knows any more nothing is wiped."""
    if strategy_of(pool) != "Proactive" or not reprovisions(pool):
        return ()
    found: list[str] = []
    for volume in (one for one in kept if not one.memory):
        name, _, postfix = volume.name.rpartition("-")
        before = known.get(volume.revision)
        if postfix == str(number) and before is not None and name in volume_changes(before.template, target.template):
            found.append(volume.name)
    return tuple(found)


class PreservedRow(msgspec.Struct, frozen=True, rename="camel"):
    # The machine that is gone.
    name: str
    # DataVolumes, and the claim with its memory.
    volumes: tuple[str, ...]
    memory: bool
    # Of its oldest volume.
    created: str
    ready_revision: str


class PreservedStates(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    machines: tuple[PreservedRow, ...]


# What is kept of a machine: its disks, and the claim with its memory.
Kept = DataVolume | PersistentVolumeClaim


def kept_volumes(pool: VirtualMachinePool, volumes: Iterable[Kept]) -> dict[str, list[Kept]]:
    """By machine that is gone: what the pool owns, and nobody controls."""
    kept: dict[str, list[Kept]] = {}
    for volume in volumes:
        machine = volume.labels.get(labels.MACHINE_NAME, "")
        owned = any(one.uid == pool.uid for one in volume.metadata.owner_references or ())
        if owned and machine and not volume.controller_uid and not volume.being_deleted:
            kept.setdefault(machine, []).append(volume)
    return kept


def preserved_report(pool: VirtualMachinePool, kept: Mapping[str, Sequence[Kept]]) -> PreservedStates:
    rows = [
        PreservedRow(
            name=machine,
            volumes=tuple(volume.name for volume in volumes),
            memory=any(isinstance(volume, PersistentVolumeClaim) for volume in volumes),
            created=min((text_of(made) for one in volumes if (made := one.metadata.creation_timestamp)), default=""),
            ready_revision=next((mark for one in volumes if (mark := one.annotations.get(labels.READY_REVISION))), ""),
        )
        for machine, volumes in kept.items()
    ]
    return PreservedStates(pool.namespace, pool.name, tuple(sorted(rows, key=lambda row: (len(row.name), row.name))))
