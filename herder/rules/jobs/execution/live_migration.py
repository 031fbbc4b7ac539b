"""A job of a pod in which a guest runs: the guest is moved to another node, and its pod goes when it is empty (seed 004).

The target pod of the migration is the room, and no reservation is made; unless the job asks for one. From the moment in which the
guest is on its way the migration's own deadlines hold, and not the job's.
"""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import reasons, registry
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.rules.instances.plan import phase_of as instance_phase
from herder.rules.jobs.execution import room
from herder.rules.jobs.execution.eviction import evicting, has_begun, pod_name
from herder.rules.jobs.execution.guest import guest_is_there, instance_of, is_alive, target_pod_of, why_no_guest
from herder.rules.jobs.execution.outcome import fail, show, succeed
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.replacement import bound_conditions, reference_to, says_it_is_taken
from herder.rules.jobs.execution.reservation_first import reserve
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import changed_status, has, status_of
from herder.rules.jobs.execution.strategy import Strategy
from herder.rules.jobs.migration import (
    followed_migration,
    is_being_cancelled,
    is_handed_over,
    is_made_by,
    migration_document,
    migration_name,
    pod_to_reserve_for,
)
from herder.rules.migration.explain import not_migratable
from herder.rules.migration.phases import finished, phase_of, source_of, target_of
from herder.rules.plans import Delete, Document, Event, condition

# What the job's reason is where the migration failed for one of these; for all others it is FailedEvict.
_FAILURES: Final = {
    reasons.SOURCE_STOPPED: reasons.MISSING_POD,
    reasons.VMI_NOT_FOUND: reasons.MISSING_POD,
    reasons.NOT_LIVE_MIGRATABLE: reasons.FORBIDDEN_MIGRATE_POD,
    reasons.PENDING_TIMEOUT: reasons.TIMEOUT,
}


class _LiveMigration:
    def committed(self, snapshot: JobSnapshot) -> bool:
        """The guest was given away: what is deleted from then on brings nobody back."""
        migration = _followed(snapshot)
        return has(snapshot.job, reasons.EVICTION) or (migration is not None and is_handed_over(migration))

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        migration = _followed(snapshot)
        if migration is not None:
            return _follow(snapshot, migration, now)
        return _ended(snapshot, now) or _waits(snapshot, now) or _reserve(snapshot, now) or _begin(snapshot, now)

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        """Deleting a migration cancels it. One that somebody else made is theirs to cancel."""
        return JobPlan(delete_migration=_cancel(snapshot), delete_reservation=room.release(snapshot))

    def settled(self, snapshot: JobSnapshot) -> bool:
        """A migration goes on without its job."""
        return True

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        migration = _followed(snapshot)
        runs = migration is not None and (phase_of(migration) == "Running" or finished(migration))
        return not runs and not has(snapshot.job, reasons.EVICTION)


LIVE_MIGRATION: Strategy = _LiveMigration()


# --- before there is a migration -------------------------------------------------------------------------------------------------


def _ended(snapshot: JobSnapshot, now: float) -> JobPlan | None:
    """Where nothing is left that could be moved, or it was called off."""
    reference = status_of(snapshot.job).migration_ref
    if reference is not None and reference.uid:
        return _follow_the_guest(snapshot, f"{reference.namespace}/{reference.name}", now)
    why = why_no_guest(snapshot)
    return fail(snapshot, reasons.MISSING_POD, why, now) if why else _forbidden(snapshot, now)


def _follow_the_guest(snapshot: JobSnapshot, migration: str, now: float) -> JobPlan:
    """The migration was removed: where the guest is now says how it ended."""
    instance = instance_of(snapshot)
    if instance is not None and is_alive(instance) and not guest_is_there(snapshot):
        return _arrived(snapshot, None, (instance.status.node_name if instance.status else None) or "", now)
    why = why_no_guest(snapshot)
    if why:
        return fail(snapshot, reasons.MISSING_POD, why, now)
    said = f"migration {migration} was deleted, which cancels it"
    return fail(snapshot, reasons.FAILED_EVICT, said, now, conditions=(_failed_evict(said),))


def _forbidden(snapshot: JobSnapshot, now: float) -> JobPlan | None:
    instance = instance_of(snapshot)
    impossible = not_migratable(instance) if instance is not None and instance_phase(instance) == "Running" else None
    if instance is None or impossible is None:
        return None
    said = f"the guest of {_path(instance)} cannot be moved while it runs: {impossible.reason}: {impossible.message}"
    return fail(snapshot, reasons.FORBIDDEN_MIGRATE_POD, said, now)


def _waits(snapshot: JobSnapshot, now: float) -> JobPlan | None:
    instance = instance_of(snapshot)
    assert instance is not None, "without one it has failed"
    name = migration_name(snapshot.job)
    other = next((one for one in snapshot.migrations if not finished(one) or one.name == name), None)
    if other is not None:
        return _held(snapshot, reasons.ANOTHER_MIGRATION, f"migration {_path(other)} {_why_before(snapshot.job, other)}", now)
    phase = instance_phase(instance)
    if phase == "Running":
        return None
    said = (instance.status.message if instance.status else None) or "it is moved once it runs"
    return _held(snapshot, reasons.GUEST_NOT_RUNNING, f"the guest of {_path(instance)} is {phase or 'Pending'}: {said}", now)


def _why_before(job: PodMigrationJob, other: VirtualMachineInstanceMigration) -> str:
    if other.being_deleted:
        return "is being cancelled, and another begins when it is gone"
    if finished(other):
        return "is over and not this job's, and has the name that this job's would have: delete it"
    return f"moves the guest to pod {pod_name(job)}, and another begins when it is over"


def _held(snapshot: JobSnapshot, reason: str, message: str, now: float) -> JobPlan:
    return JobPlan(status=changed_status(snapshot.job, now, reason=reason, message=message))


def _reserve(snapshot: JobSnapshot, now: float) -> JobPlan | None:
    """Only where the job asks for it: the room that a guest needs is its target pod."""
    instance, written = instance_of(snapshot), snapshot.written_instance
    if not _asks_for_room(snapshot.job):
        return None
    pod = pod_to_reserve_for(instance, written) if instance is not None and written is not None else None
    return reserve(msgspec.structs.replace(snapshot, written_pod=pod), now)


def _begin(snapshot: JobSnapshot, now: float) -> JobPlan:
    """Under which name is durable before it is made."""
    job, instance = snapshot.job, instance_of(snapshot)
    assert instance is not None, "without one it has failed"
    reservation = snapshot.reservation if _asks_for_room(job) else None
    node = (reservation.status.node_name if reservation is not None else None) or ""
    made = JobPlan(
        hold=True,
        open_reservation=reservation is not None and not room.is_open(reservation),
        create_migration=migration_document(job, instance, node),
    )
    known, name = status_of(job).migration_ref, f"{instance.namespace}/{migration_name(job)}"
    if has_begun(job) and known is not None and known.name == migration_name(job):
        return made
    shown = show(
        snapshot,
        now,
        conditions=(*(room.look_at_room(snapshot).conditions if reservation is not None else ()), _moving(name)),
        reason=reasons.EVICTING,
        message=f"migration {name} is made for the guest of {_path(instance)}",
        migrationRef=_reference(instance.namespace, migration_name(job)),
    )
    event = Event("Normal", reasons.EVICTING, f"migration {name} moves the guest of {_path(instance)} to another node")
    return msgspec.structs.replace(made, status=shown.status, events=(*shown.events, event))


# --- while there is one ----------------------------------------------------------------------------------------------------------


def _follow(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration, now: float) -> JobPlan:
    phase = phase_of(migration)
    if phase == "Failed":
        return _failed(snapshot, migration, now)
    if phase == "Succeeded":
        return _arrived(snapshot, migration, target_of(migration), now)
    return _on_its_way(snapshot, migration, now)


def _failed(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration, now: float) -> JobPlan:
    status = migration.status
    reason, message = ((status.reason or ""), (status.message or "")) if status is not None else ("", "")
    why = ": ".join(part for part in (reason, message) if part)
    said = f"migration {_path(migration)} of VirtualMachineInstance {migration.spec.vmi_name} failed: {why}"
    reference = _reference(migration.namespace, migration.name, migration.uid)
    failed = (_failed_evict(said),)
    return fail(snapshot, _FAILURES.get(reason, reasons.FAILED_EVICT), said, now, conditions=failed, migrationRef=reference)


def _arrived(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration | None, node: str, now: float) -> JobPlan:
    """It runs at the target; its old pod has nothing left to do, and goes."""
    target = target_pod_of(snapshot, migration)
    fields: Document = {"nodeName": node or None}
    if migration is not None:
        fields["migrationRef"] = _reference(migration.namespace, migration.name, migration.uid)
    if target is not None:
        fields["podRef"] = reference_to(target)
    placed = _placed(snapshot, target, node)
    taken = target is None or target.uid not in _takers(snapshot) or says_it_is_taken(snapshot, target)
    if snapshot.pod is None and taken:
        gone = condition(reasons.EVICTION, True, reasons.EVICT_COMPLETE, f"pod {pod_name(snapshot.job)} is gone")
        said = f"the guest of pod {pod_name(snapshot.job)} runs on node {node}"
        done = succeed(snapshot, said, now, conditions=(*placed, gone), **fields)
        # One of its own that has not begun would move the guest once more.
        return msgspec.structs.replace(_released(snapshot, done), delete_migration=_cancel(snapshot))
    moving = _moving(_path(migration)) if migration is not None else evicting()
    left = f"pod {pod_name(snapshot.job)}, which it left, is not gone yet"
    untold = f"Reservation {room.referred_to(snapshot.job)} does not say yet that it is taken"
    said = f"the guest runs on node {node}; {left if snapshot.pod is not None else untold}"
    conditions = (moving, *placed)
    return _released(snapshot, show(snapshot, now, conditions=conditions, reason=reasons.EVICTING, message=said, **fields))


def _on_its_way(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration, now: float) -> JobPlan:
    target = target_pod_of(snapshot, migration)
    node = target.spec.node_name if target is not None else ""
    fields: Document = {"migrationRef": _reference(migration.namespace, migration.name, migration.uid)}
    if target is not None and node:
        fields |= {"podRef": reference_to(target), "nodeName": node}
    reason, message = _stage(migration)
    placed = _placed(snapshot, target, node)
    if not node and reason == reasons.UNSCHEDULABLE:
        placed = [condition(reasons.POD_SCHEDULED, False, reasons.UNSCHEDULABLE, message)]
    conditions = (_moving(_path(migration)), *placed, *_waits_for_room(snapshot, migration, node))
    plan = show(snapshot, now, conditions=conditions, reason=reason, message=message, **fields)
    if _is_news(snapshot.job, migration):
        told = Event("Normal", reasons.EVICTING, f"follows migration {_path(migration)}, which moves the guest already")
        plan = msgspec.structs.replace(plan, events=(*plan.events, told))
    # Room for a target that is somebody else's, or has its place elsewhere, is held for nobody.
    useless = bool(node) or not is_made_by(snapshot.job, migration)
    return _released(snapshot, plan) if useless else plan


def _stage(migration: VirtualMachineInstanceMigration) -> tuple[str, str]:
    """Reason and sentence. No numbers that change all the time: the migration itself says how far it is."""
    name, phase, status = _path(migration), phase_of(migration), migration.status
    reason, message = ((status.reason or ""), (status.message or "")) if status is not None else ("", "")
    source, target = source_of(migration), target_of(migration)
    if is_being_cancelled(migration):
        return reasons.EVICTING, f"migration {name} was deleted, and is being cancelled"
    if phase == "Pending":
        return reasons.EVICTING, f"migration {name} waits for its turn{f' ({reason})' if reason else ''}: its status says more"
    if phase == "Scheduling" and message:
        return reasons.UNSCHEDULABLE, f"the target of migration {name} has no node yet: {message}"
    if phase == "Running":
        if is_handed_over(migration):
            return reasons.EVICTING, f"migration {name} has handed the guest over to node {target}"
        return reasons.EVICTING, f"migration {name} moves the guest from node {source} to node {target}"
    where = f"node {target} gets ready for the guest" if target else "its target gets a node"
    return reasons.EVICTING, f"migration {name} goes on: {where}"


# --- what both ask ---------------------------------------------------------------------------------------------------------------


def _followed(snapshot: JobSnapshot) -> VirtualMachineInstanceMigration | None:
    return followed_migration(snapshot.job, snapshot.migrations, holds_guest=snapshot.pod is not None and guest_is_there(snapshot))


def _cancel(snapshot: JobSnapshot) -> Delete | None:
    """Of the job's own, unless it is over or being cancelled already."""
    ours = next((one for one in snapshot.migrations if is_made_by(snapshot.job, one)), None)
    return Delete(ours.name, ours.uid) if ours is not None and not finished(ours) and not ours.being_deleted else None


def _placed(snapshot: JobSnapshot, target: Pod | None, node: str) -> list[Document]:
    if target is not None and target.uid in _takers(snapshot):
        return bound_conditions(snapshot, target)
    return [condition(reasons.POD_SCHEDULED, True, reasons.POD_SCHEDULED, f"on node {node}")] if node else []


def _waits_for_room(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration, node: str) -> list[Document]:
    reservation = snapshot.reservation
    if node or reservation is None or not _asks_for_room(snapshot.job) or not is_made_by(snapshot.job, migration):
        return []
    said = f"the target of migration {_path(migration)} has not taken the room on node {reservation.status.node_name} yet"
    return [condition(reasons.POD_BOUND_RESERVATION, False, reasons.WAIT_FOR_POD_BIND_RESERVATION, said)]


def _released(snapshot: JobSnapshot, plan: JobPlan) -> JobPlan:
    """Without room of the job's own that nobody took."""
    return msgspec.structs.replace(plan, delete_reservation=room.release(snapshot))


def _takers(snapshot: JobSnapshot) -> set[str]:
    return {pod.uid for pod in snapshot.takers}


def _asks_for_room(job: PodMigrationJob) -> bool:
    options = job.spec.reservation_options
    return options is not None and (options.reservation_ref is not None or options.template is not None)


def _is_news(job: PodMigrationJob, migration: VirtualMachineInstanceMigration) -> bool:
    known = status_of(job).migration_ref
    return not is_made_by(job, migration) and (known is None or known.uid != migration.uid)


def _moving(migration: str) -> Document:
    return evicting(f"migration {migration} moves the guest")


def _failed_evict(message: str) -> Document:
    return condition(reasons.EVICTION, False, reasons.FAILED_EVICT, message)


def _reference(namespace: str, name: str, uid: str = "") -> Document:
    kind = {"apiVersion": registry.MIGRATION.api_version, "kind": registry.MIGRATION.kind}
    return {**kind, "namespace": namespace, "name": name, **({"uid": uid} if uid else {})}


def _path(thing: VirtualMachineInstance | VirtualMachineInstanceMigration) -> str:
    return f"{thing.namespace}/{thing.name}"
