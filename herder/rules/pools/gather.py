"""From objects as they are read to the snapshot that a pool's plan is made from, for the controller and for who asks beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import defaults, labels
from herder.api.core import ControllerRevision, Node, PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.memory import memory_claim
from herder.api.reading import part
from herder.rules.instances.observed import answers
from herder.rules.plans import Document, plain
from herder.rules.pools.member import Member, member_of
from herder.rules.pools.naming import number_of
from herder.rules.pools.revisions import Revision, is_genuine, stored_revision
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.snapshot import Attachable, OwnedVolume, PoolSnapshot
from herder.rules.suspension.memory import state_in


class Everything(msgspec.Struct, frozen=True, kw_only=True):
    """Of the pool's namespace, and the nodes where they may be read."""

    machines: Iterable[VirtualMachine]
    instances: Iterable[VirtualMachineInstance] = ()
    volumes: Iterable[DataVolume] = ()
    claims: Iterable[PersistentVolumeClaim] = ()
    revisions: Iterable[ControllerRevision] = ()
    nodes: Iterable[Node] = ()


def snapshot_of(
    pool: VirtualMachinePool, written: Document, everything: Everything, *, burst: int = defaults.POOL_BURST
) -> PoolSnapshot:
    """`written`: the pool as it is stored. What the API server last refused only the controller knows."""
    machines, instances = list(everything.machines), {one.name: one for one in everything.instances}
    ours = [machine for machine in machines if machine.controller_uid == pool.uid]
    others = [machine for machine in machines if machine.controller_uid != pool.uid and number_of(pool.name, machine.name)]
    claims = {claim.name: claim for claim in everything.claims}
    members = [
        member_of(pool.name, machine, instances.get(machine.name), state_in(machine.uid, claims.get(memory_claim(machine.name))))
        for machine in ours
    ]
    volumes = (owned_volume(pool, volume) for volume in (*everything.volumes, *claims.values()))
    revisions = (usable_revision(pool, one) for one in everything.revisions)
    return PoolSnapshot(
        pool=pool,
        template=part(written, "spec", "template"),
        name_generation=part(written, "spec", "nameGeneration"),
        members=tuple(sorted(members, key=by_number)),
        held=frozenset(machine.name for machine in others),
        detached=tuple(machine.name for machine in others if was_ours(pool.name, machine.labels)),
        attachable=tuple(found for machine in machines if (found := attachable(pool, machine)) is not None),
        volumes=tuple(volume for volume in volumes if volume is not None),
        living=frozenset(machine.uid for machine in machines if not machine.being_deleted),
        revisions=tuple(one for one in revisions if one is not None),
        nodes={node.name: node_state(node) for node in everything.nodes},
        burst=burst,
    )


def by_number(member: Member) -> tuple[int, str]:
    return member.number or 0, member.name


def was_ours(pool: str, marks: Mapping[str, str]) -> bool:
    """A machine that was detached still says which revision it was made from."""
    return marks.get(labels.POOL_REVISION, "").startswith(f"{pool}-")


def node_state(node: Node) -> NodeState:
    return NodeState(node.labels, answers(node))


def attachable(pool: VirtualMachinePool, machine: VirtualMachine) -> Attachable | None:
    """Where it names the pool as an owner, and nobody as its controller."""
    if machine.controller_uid or machine.being_deleted or number_of(pool.name, machine.name) is None:
        return None
    if not _is_owned_by(machine, pool.uid):
        return None
    version = machine.metadata.resource_version or ""
    return Attachable(name=machine.name, uid=machine.uid, resource_version=version, references=references_of(machine))


def owned_volume(pool: VirtualMachinePool, volume: DataVolume | PersistentVolumeClaim) -> OwnedVolume | None:
    """Of claims only those with memory: that of a DataVolume goes with it."""
    memory = isinstance(volume, PersistentVolumeClaim)
    if not _is_owned_by(volume, pool.uid) or (memory and labels.MEMORY not in volume.annotations):
        return None
    return OwnedVolume(
        name=volume.name,
        uid=volume.uid,
        resource_version=volume.metadata.resource_version or "",
        machine=volume.labels.get(labels.MACHINE_NAME, ""),
        controller=volume.controller_uid or "",
        deleting=volume.being_deleted,
        ready_revision=volume.annotations.get(labels.READY_REVISION, ""),
        revision=volume.annotations.get(labels.POOL_REVISION, ""),
        references=references_of(volume),
        memory=memory,
    )


def _is_owned_by(thing: VirtualMachine | DataVolume | PersistentVolumeClaim, uid: str) -> bool:
    return any(one.uid == uid for one in thing.metadata.owner_references or ())


def usable_revision(pool: VirtualMachinePool, stored: ControllerRevision) -> Revision | None:
    """None for what somebody else keeps, or has changed."""
    if stored.controller_uid != pool.uid or stored.being_deleted:
        return None
    revision = stored_revision(stored)
    return revision if is_genuine(pool, revision) else None


def references_of(thing: VirtualMachine | DataVolume | PersistentVolumeClaim) -> tuple[Document, ...]:
    return tuple(found for one in thing.metadata.owner_references or () if (found := plain(one)) is not None)
