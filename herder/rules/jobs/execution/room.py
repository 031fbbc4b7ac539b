"""The reservation of a job that runs: made from the pod, or given; and whether it is room for the pod that will come."""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.api.duration import format_seconds
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.rules.jobs.execution.eviction import pod_name
from herder.rules.jobs.execution.plan import NOTHING, JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import has
from herder.rules.jobs.execution.ttl import ttl_of
from herder.rules.jobs.reservation import reservation_document, reservation_name
from herder.rules.jobs.workload import STATEFUL_SET, controller_named
from herder.rules.matching.resources import PODS, pod_requests
from herder.rules.plans import Delete, Document, condition, find
from herder.rules.reservations.lifecycle import is_finished, job_that_made, why_unfit
from herder.rules.reservations.owners import matches
from herder.rules.reservations.room import allocates_once, placing_needs, total

# Beyond the job's own time: what was evicted at its end must still find its room.
KEPT_AFTER: Final = 1800.0


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the reservation leads to; the first of these that is there counts."""

    # Reason and sentence: the job fails.
    failure: tuple[str, str] | None = None
    # The next step, which is not the room's last.
    plan: JobPlan | None = None
    # Reason and sentence: it is waited for.
    waits: tuple[str, str] | None = None
    # What the job says of it from now on.
    conditions: tuple[Document, ...] = ()


def look_at_room(snapshot: JobSnapshot) -> Room:
    """Room that is there has nothing but conditions."""
    reservation = snapshot.reservation
    if reservation is None:
        return _without(snapshot)
    if is_own(snapshot.job, reservation):
        return _own(snapshot, reservation)
    if not refers_elsewhere(snapshot.job):
        said = f"Reservation {reservation.name} is there already, and belongs to someone else"
        failed = condition(reasons.RESERVATION_CREATED, False, reasons.FAILED_CREATE_RESERVATION, said)
        return Room(failure=(reasons.FAILED_CREATE_RESERVATION, said), conditions=(failed,))
    return _given(snapshot, reservation)


def referred_to(job: PodMigrationJob) -> str:
    """The reservation that the job names, or would be named by us."""
    options = job.spec.reservation_options
    reference = options.reservation_ref if options is not None else None
    return (reference.name if reference is not None else None) or reservation_name(job)


def refers_elsewhere(job: PodMigrationJob) -> bool:
    return referred_to(job) != reservation_name(job)


def is_own(job: PodMigrationJob, reservation: ReservationView) -> bool:
    """Made for this job, and so to be released by it. By its owner, and not by its name."""
    return reservation.controller_uid == job.uid


def release(snapshot: JobSnapshot) -> Delete | None:
    """Of our own, unless it is taken or over."""
    reservation = snapshot.reservation
    if reservation is None or not is_own(snapshot.job, reservation) or reservation.being_deleted:
        return None
    return None if is_finished(reservation) or snapshot.takers else Delete(reservation.name, reservation.uid)


def is_open(reservation: ReservationView) -> bool:
    return not reservation.spec.unschedulable


def look_at_node(snapshot: JobSnapshot) -> Room:
    """Whether the room is still one, right before somebody is sent there: the reservation itself may not have been sent back yet
    from a node that is gone, cordoned or tainted since."""
    reservation = snapshot.reservation
    why = why_unfit(reservation, snapshot.reserved_node) if reservation is not None else ""
    if not why:
        return Room()
    waiting = condition(reasons.RESERVATION_SCHEDULED, False, reasons.UNSCHEDULABLE, why)
    return Room(waits=(reasons.UNSCHEDULABLE, why), conditions=(waiting,))


def _without(snapshot: JobSnapshot) -> Room:
    job = snapshot.job
    name = referred_to(job)
    if refers_elsewhere(job):
        return Room(failure=(reasons.MISSING_RESERVATION, f"Reservation {name}, which reservationRef names, is not there"))
    if has(job, reasons.RESERVATION_CREATED):
        return Room(failure=(reasons.MISSING_RESERVATION, f"Reservation {name} was deleted before the pod was evicted"))
    if snapshot.pod is None or snapshot.written_pod is None:
        return Room(plan=NOTHING)
    ttl = ttl_of(job)
    held = format_seconds(ttl + KEPT_AFTER) if ttl else "0s"
    document = reservation_document(job, snapshot.pod, snapshot.written_pod, snapshot.written_template, held)
    options = job.spec.reservation_options
    named = options is not None and options.reservation_ref is not None
    return Room(plan=JobPlan(hold=True, refer="" if named else name, create_reservation=document))


def _own(snapshot: JobSnapshot, reservation: ReservationView) -> Room:
    created = condition(reasons.RESERVATION_CREATED, True, reasons.RESERVATION_CREATED)
    if reservation.being_deleted:
        return _going(snapshot, reservation)
    if is_finished(reservation) or snapshot.takers:
        # Somebody was faster, or it was left over from before a pause: it is made anew.
        return Room(plan=JobPlan(delete_reservation=Delete(reservation.name, reservation.uid)))
    return _placed(snapshot, reservation, (created,))


def _going(snapshot: JobSnapshot, reservation: ReservationView) -> Room:
    """Somebody deleted it; or we did, before a pause, and then another one is made once it is gone. Either may take long: whoever
    has a finalizer on it decides."""
    if not has(snapshot.job, reasons.RESERVATION_CREATED):
        return Room(plan=NOTHING)
    return Room(failure=(reasons.MISSING_RESERVATION, f"Reservation {reservation.name} was deleted before the pod was evicted"))


def _given(snapshot: JobSnapshot, reservation: ReservationView) -> Room:
    why = _why_unusable(snapshot, reservation)
    if why:
        return Room(failure=(reasons.FORBIDDEN_MIGRATE_POD, f"Reservation {reservation.name}, which reservationRef names, {why}"))
    return _placed(snapshot, reservation, (condition(reasons.RESERVATION_CREATED, True, reasons.RESERVATION_CREATED),))


def _placed(snapshot: JobSnapshot, reservation: ReservationView, conditions: tuple[Document, ...]) -> Room:
    if reservation.status.phase != "Available":
        words = _scheduler_words(reservation)
        waiting = condition(reasons.RESERVATION_SCHEDULED, False, reasons.UNSCHEDULABLE, words)
        said = f"Reservation {reservation.name} has no node yet" + (f": {words}" if words else "")
        return Room(waits=(reasons.UNSCHEDULABLE, said), conditions=(*conditions, waiting))
    node = reservation.status.node_name
    if snapshot.pod is not None and node == snapshot.pod.spec.node_name:
        said = f"Reservation {reservation.name} is on node {node}, where pod {pod_name(snapshot.job)} is already"
        return Room(failure=(reasons.FORBIDDEN_MIGRATE_POD, said), conditions=conditions)
    there = condition(reasons.RESERVATION_SCHEDULED, True, reasons.RESERVATION_SCHEDULED, f"on node {node}")
    return Room(conditions=(*conditions, there))


def _scheduler_words(reservation: ReservationView) -> str:
    scheduled = find(reservation.status.conditions, reasons.SCHEDULED)
    return (scheduled.message if scheduled is not None else "") or ""


def _why_unusable(snapshot: JobSnapshot, reservation: ReservationView) -> str:
    """Whatever it is by now: one that is not placed yet is waited for, but must be the right one already."""
    pod = snapshot.pod
    if reservation.being_deleted or is_finished(reservation):
        return f"is over (phase {reservation.status.phase})" if is_finished(reservation) else "is being deleted"
    if not is_open(reservation):
        return "is closed (spec.unschedulable is true)"
    owner = job_that_made(reservation)
    if owner is not None:
        return f"was made by PodMigrationJob {owner.name}, for itself"
    once = allocates_once(reservation)
    if once and snapshot.reservation_used_by:
        return f"is what PodMigrationJob {snapshot.reservation_used_by[0]} uses"
    if once and snapshot.takers:
        return f"was taken by pod {snapshot.takers[0].namespace}/{snapshot.takers[0].name}"
    if pod is None:
        return ""
    if not matches(reservation, as_replacement(pod)):
        return f"is not for the pods that would take the place of {pod_name(snapshot.job)}: none of its owners fits them"
    return _why_too_small(snapshot, reservation, pod)


def _why_too_small(snapshot: JobSnapshot, reservation: ReservationView, pod: Pod) -> str:
    held, taken = placing_needs(reservation).requests, total(pod_requests(one) for one in snapshot.takers)
    for name, amount in sorted(pod_requests(pod).items()):
        if name != PODS and amount > held.get(name, 0) - taken.get(name, 0):
            return f"has too little {name} left for pod {pod_name(snapshot.job)}"
    return ""


def as_replacement(pod: Pod) -> Pod:
    """A pod like the one that will come: under another name, but for a StatefulSet's, and with another identity. One that waits for
    its own first place is meant itself."""
    if not pod.spec.node_name:
        return pod
    keeps_name = pod.controller is not None and controller_named(pod.controller).group_kind == STATEFUL_SET
    metadata = msgspec.structs.replace(pod.metadata, uid="", name=pod.name if keeps_name else "")
    return msgspec.structs.replace(pod, metadata=metadata)
