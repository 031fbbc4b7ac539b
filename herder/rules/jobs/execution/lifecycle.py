"""What all jobs share, whichever way they go: their time, pauses, being aborted or deleted, and what becomes of them in the end."""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import labels, reasons
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobStrategy
from herder.api.problems import shortened
from herder.rules.jobs.arbitration.arbitrate import Refused
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.execution import room
from herder.rules.jobs.execution.evict_directly import EVICT_DIRECTLY
from herder.rules.jobs.execution.eviction import evicting, has_begun, pod_name
from herder.rules.jobs.execution.live_migration import LIVE_MIGRATION
from herder.rules.jobs.execution.outcome import fail, show
from herder.rules.jobs.execution.placement import PLACEMENT
from herder.rules.jobs.execution.plan import NOTHING, JobPlan
from herder.rules.jobs.execution.reservation_first import RESERVATION_FIRST
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import (
    changed_status,
    finished_status,
    is_over,
    pending_since,
    phase_of,
    sent_back_status,
    status_of,
)
from herder.rules.jobs.execution.strategy import Strategy
from herder.rules.jobs.execution.surge import SURGE
from herder.rules.jobs.execution.ttl import time_left
from herder.rules.plans import Delete, Event, condition

STRATEGIES: Final[dict[JobStrategy, Strategy]] = {
    "Reservation": RESERVATION_FIRST,
    "Eviction": EVICT_DIRECTLY,
    "Placement": PLACEMENT,
    "LiveMigration": LIVE_MIGRATION,
    "Surge": SURGE,
}
# A budget that refuses is asked again: at once when it changes, and in any case after this time.
BUDGET_EVERY: Final = 10.0
LONGEST_ANSWER: Final = 1024
# Whether anybody is still to take the room of a job that is over.
ROOM_EVERY: Final = 30.0


def plan_job(snapshot: JobSnapshot, now: float) -> JobPlan:
    job = snapshot.job
    if is_over(job):
        return _over(snapshot, now)
    if why := why_aborted(job):
        return _aborted(snapshot, why, now)
    if phase_of(job) == "Pending":
        return _pending(snapshot, now)
    return _running(snapshot, now)


def strategy_of(job: PodMigrationJob) -> Strategy:
    return STRATEGIES[status_of(job).strategy or "Eviction"]


def why_aborted(job: PodMigrationJob) -> str:
    if job.being_deleted:
        return "the job was deleted"
    return f"annotation {labels.ABORT} asks for it" if job.annotations.get(labels.ABORT) == "true" else ""


def undoes(plan: JobPlan) -> bool:
    """Whether it rests on the pod being where it was: that is looked at live, where an eviction may be under way."""
    if plan.status is not None and plan.status["phase"] == "Pending":
        return True
    return plan.delete_reservation is not None or plan.delete_migration is not None or bool(plan.patch_pods) or plan.let_go


def held_plan(snapshot: JobSnapshot, held: Wait | Refused, now: float) -> JobPlan:
    """In place of one that disrupts, where something holds it right before. A budget is waited for; a limit or a rollout sends the
    job back to where others wait, with nothing held."""
    if isinstance(held, Refused):
        return fail(snapshot, held.reason, held.message, now)
    if held.reason == reasons.WAITING_FOR_DISRUPTION_BUDGET:
        return waiting_plan(snapshot, held.reason, held.message, BUDGET_EVERY, now)
    return _sent_back(snapshot, held.reason, held.message, now)


def waiting_plan(snapshot: JobSnapshot, reason: str, message: str, seconds: float, now: float) -> JobPlan:
    """Still running, and held for a while. That room was found meanwhile is said all the same."""
    found = room.look_at_room(snapshot).conditions if snapshot.reservation is not None else ()
    if found:
        plan = show(snapshot, now, conditions=found, reason=reason, message=message)
    else:
        plan = JobPlan(status=changed_status(snapshot.job, now, reason=reason, message=message))
    left = time_left(snapshot.job, now)
    return msgspec.structs.replace(plan, next_look=seconds if left is None else max(0.0, min(seconds, left)))


def eviction_refused(snapshot: JobSnapshot, message: str, now: float, *, budget: bool, final: bool, retry: float) -> JobPlan:
    """The server did not evict the pod. `budget`: one has no disruption left; `final`: the same would be refused for ever."""
    reason, message = reasons.WAITING_FOR_DISRUPTION_BUDGET if budget else reasons.FAILED_EVICT, _answered(message)
    told = evicting(message) if budget else condition(reasons.EVICTION, False, reasons.FAILED_EVICT, message)
    if final:
        return fail(snapshot, reasons.FAILED_EVICT, message, now, conditions=(told,))
    status = changed_status(snapshot.job, now, conditions=(told,), reason=reason, message=message)
    left = time_left(snapshot.job, now)
    return JobPlan(status=status, next_look=retry if left is None else max(0.0, min(retry, left)))


def reservation_refused(snapshot: JobSnapshot, message: str, now: float) -> JobPlan:
    message = _answered(message)
    told = condition(reasons.RESERVATION_CREATED, False, reasons.FAILED_CREATE_RESERVATION, message)
    return fail(snapshot, reasons.FAILED_CREATE_RESERVATION, message, now, conditions=(told,))


def _answered(message: str) -> str:
    """Whoever has a say in what a server answers may say a lot, and a status has an end."""
    return shortened(message, LONGEST_ANSWER)


def _running(snapshot: JobSnapshot, now: float) -> JobPlan:
    job, way = snapshot.job, strategy_of(snapshot.job)
    committed = way.committed(snapshot)
    if snapshot.config.dry_run and not committed and not _has_acted(job):
        return _dry_run(snapshot, now)
    left = time_left(job, now) if way.keeps_time(snapshot) else None
    if left is not None and left <= 0:
        return _timed_out(snapshot, committed, now)
    if job.spec.paused and not committed:
        return _sent_back(snapshot, reasons.PAUSED, "spec.paused is true", now)
    plan = way.advance(snapshot, now)
    soonest = min((one for one in (plan.next_look, left) if one is not None), default=None)
    return msgspec.structs.replace(plan, next_look=soonest)


def _has_acted(job: PodMigrationJob) -> bool:
    """What was begun before somebody asked for nothing but a try is brought to its end."""
    return has_begun(job) or labels.JOB_FINALIZER in job.finalizers or status_of(job).migration_ref is not None


def _sent_back(snapshot: JobSnapshot, reason: str, message: str, now: float) -> JobPlan:
    """Its slot and its room are free, and its time stands still."""
    undo = strategy_of(snapshot.job).undo(snapshot)
    event = Event("Normal", reason, f"waits again: {message}")
    return msgspec.structs.replace(undo, status=sent_back_status(snapshot.job, reason, message, now), events=(event,))


def _timed_out(snapshot: JobSnapshot, committed: bool, now: float) -> JobPlan:
    status = status_of(snapshot.job)
    waited = f": {status.message}" if status.message else ""
    kept = "; the room is kept for the replacement" if committed and snapshot.reservation is not None else ""
    return fail(snapshot, reasons.TIMEOUT, f"the job's time of {status.ttl} was over{waited}{kept}", now)


def _dry_run(snapshot: JobSnapshot, now: float) -> JobPlan:
    strategy = status_of(snapshot.job).strategy
    deed = _DEEDS.get(strategy or "Eviction", "evicted")
    message = f"pod {pod_name(snapshot.job)} would be {deed}; dryRun of jobs.yaml is true, and nothing was done"
    status = finished_status(snapshot.job, "Succeed", reasons.DRY_RUN, message, now)
    return JobPlan(status=status, events=(Event("Normal", reasons.DRY_RUN, message),))


_DEEDS: Final[dict[str, str]] = {
    "Reservation": "evicted once room for its replacement was reserved",
    "Eviction": "evicted",
    "Placement": "given a reservation",
    "LiveMigration": "live-migrated",
    "Surge": "replaced by another one first, and then evicted",
}


def _pending(snapshot: JobSnapshot, now: float) -> JobPlan:
    """Whether it may begin is decided among all that wait (arbitration). What was left over from before goes."""
    job = snapshot.job
    if snapshot.pod is None:
        return fail(snapshot, reasons.MISSING_POD, f"pod {pod_name(job)} is gone", now)
    undo = strategy_of(job).undo(snapshot) if status_of(job).strategy is not None else NOTHING
    pending, most = pending_since(job), snapshot.config.pending_ttl
    if not most or pending is None:
        return undo
    left = pending.timestamp() + most - now
    if left > 0:
        return msgspec.structs.replace(undo, next_look=left)
    waited = status_of(job).message
    return fail(snapshot, reasons.TIMEOUT, f"it waited for longer than pendingTTL allows{f': {waited}' if waited else ''}", now)


def _aborted(snapshot: JobSnapshot, why: str, now: float) -> JobPlan:
    committed = phase_of(snapshot.job) == "Running" and strategy_of(snapshot.job).committed(snapshot)
    message = f"{why}; the pod was on its way already, and what was prepared for it stays" if committed else why
    status = finished_status(snapshot.job, "Aborted", reasons.ABORTED, message, now)
    return JobPlan(status=status, events=(Event("Normal", reasons.ABORTED, message),))


def _over(snapshot: JobSnapshot, now: float) -> JobPlan:
    """What it made goes, unless somebody evicted is still to take it; then its finalizer, and after a while the job itself."""
    job, status = snapshot.job, status_of(snapshot.job)
    way = strategy_of(job)
    done = status.strategy is None or not way.committed(snapshot) or status.reason == reasons.NO_REPLACEMENT
    if not done and not way.settled(snapshot):
        return JobPlan(next_look=ROOM_EVERY)
    plan = way.undo(snapshot) if done and status.strategy is not None else JobPlan(delete_reservation=room.release(snapshot))
    let_go = labels.JOB_FINALIZER in job.finalizers
    if job.being_deleted or status.completion_time is None:
        return msgspec.structs.replace(plan, let_go=let_go)
    left = status.completion_time.timestamp() + snapshot.config.finished_job_ttl - now
    if left > 0:
        return msgspec.structs.replace(plan, let_go=let_go, next_look=left)
    return msgspec.structs.replace(plan, let_go=let_go, delete=Delete(job.name, job.uid))
