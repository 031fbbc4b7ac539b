"""ReservationFirst (seed 004): room is reserved, the pod is evicted, its replacement takes the room."""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.rules.jobs.execution import room
from herder.rules.jobs.execution.eviction import (
    evict_of,
    evicting,
    eviction_condition,
    has_begun,
    is_evicted,
    pod_name,
    why_not_there,
)
from herder.rules.jobs.execution.outcome import fail, show, succeed
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.replacement import (
    bound_conditions,
    reference_to,
    replacement_of,
    says_it_is_taken,
    waits_for_place,
    why_none_comes,
)
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import status_of
from herder.rules.jobs.execution.strategy import Strategy
from herder.rules.jobs.workload import STATEFUL_SET
from herder.rules.plans import Document, Event, condition, moment, text_of
from herder.rules.reservations.lifecycle import is_finished
from herder.rules.workloads.pods import is_ready

# What controllers of somebody else's want is asked for; nobody tells.
FOREIGN_EVERY: Final = 30.0
# Whether the node of a reservation is one for it again.
NODE_EVERY: Final = 5.0


class _ReservationFirst:
    def committed(self, snapshot: JobSnapshot) -> bool:
        return is_evicted(snapshot)

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        if is_evicted(snapshot):
            return _await_replacement(snapshot, now)
        gone = why_not_there(snapshot)
        if gone is not None:
            return fail(snapshot, *gone, now)
        return reserve(snapshot, now) or _evict(snapshot, now)

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        return JobPlan(delete_reservation=room.release(snapshot))

    def settled(self, snapshot: JobSnapshot) -> bool:
        reservation = snapshot.reservation
        mine = reservation is not None and room.is_own(snapshot.job, reservation)
        if reservation is None or not mine or is_finished(reservation) or snapshot.takers:
            return True
        return snapshot.pod is None and bool(why_none_comes(snapshot))

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        return True


RESERVATION_FIRST: Strategy = _ReservationFirst()


def reserve(snapshot: JobSnapshot, now: float) -> JobPlan | None:
    """The next step towards room for the pod; None once it is there."""
    look = room.look_at_room(snapshot)
    if look.failure is not None:
        return fail(snapshot, *look.failure, now, conditions=look.conditions)
    if look.plan is not None:
        # One that is thrown away is first forgotten: else it would be missed.
        forgets = look.plan.delete_reservation is not None
        return _forgetting(snapshot, look.plan, now) if forgets else look.plan
    if look.waits is not None:
        return _wait_for_room(snapshot, look, now)
    at_node = room.look_at_node(snapshot)
    if at_node.waits is None:
        return None
    # Where the node becomes a place again at once, nobody tells of it.
    return msgspec.structs.replace(_wait_for_room(snapshot, at_node, now), next_look=NODE_EVERY)


def _wait_for_room(snapshot: JobSnapshot, look: room.Room, now: float) -> JobPlan:
    assert look.waits is not None
    reason, message = look.waits
    return show(snapshot, now, conditions=look.conditions, reason=reason, message=message)


def _forgetting(snapshot: JobSnapshot, plan: JobPlan, now: float) -> JobPlan:
    shown = show(snapshot, now, conditions=(), reason=None, message=None)
    return JobPlan(status=shown.status, delete_reservation=plan.delete_reservation, next_look=0.0)


def _evict(snapshot: JobSnapshot, now: float) -> JobPlan:
    pod, reservation = snapshot.pod, snapshot.reservation
    assert pod is not None and reservation is not None
    conditions = room.look_at_room(snapshot).conditions
    rival = waits_for_place(snapshot) if not _keeps_name(snapshot) else None
    if rival is not None and not has_begun(snapshot.job):
        said = (
            f"pod {rival.namespace}/{rival.name} waits for a node, and would take the room on node {reservation.status.node_name}"
        )
        return show(snapshot, now, conditions=conditions, reason=reasons.WAITING_FOR_WORKLOAD_LIMIT, message=said)
    return begin_eviction(snapshot, pod, now, conditions=conditions, opens=not room.is_open(reservation))


def begin_eviction(
    snapshot: JobSnapshot, pod: Pod, now: float, *, conditions: tuple[Document, ...] = (), opens: bool = False
) -> JobPlan:
    """That it begins is durable before it does. What a try was told is kept: the next one says it anew, or ends it."""
    evict = evict_of(snapshot, pod)
    if has_begun(snapshot.job):
        return JobPlan(open_reservation=opens, evict=evict)
    shown = show(
        snapshot,
        now,
        conditions=(*conditions, evicting()),
        reason=reasons.EVICTING,
        message=f"pod {pod_name(snapshot.job)} is evicted",
        disruptionTime=text_of(moment(now)),
    )
    before = f"{shown.events[0].message}; " if shown.events else ""
    said = f"{before}evicting pod {pod_name(snapshot.job)} from node {pod.spec.node_name}"
    event = Event("Normal", reasons.EVICTING, said)
    return JobPlan(status=shown.status, events=(event,), open_reservation=opens, evict=evict)


def _await_replacement(snapshot: JobSnapshot, now: float) -> JobPlan:
    evicted = eviction_condition(snapshot)
    replacement = replacement_of(snapshot)
    if replacement is not None:
        return _await_ready(snapshot, replacement, evicted, now)
    why = why_none_comes(snapshot)
    if why:
        return fail(snapshot, reasons.NO_REPLACEMENT, why, now, conditions=(evicted,))
    reservation = snapshot.reservation
    if reservation is None or is_finished(reservation):
        said = f"Reservation {room.referred_to(snapshot.job)} was gone before the replacement took it: it is placed without it"
        return fail(snapshot, reasons.MISSING_RESERVATION, said, now, conditions=(evicted,))
    where = f"on node {reservation.status.node_name}" if reservation.status.node_name else "which has no node at the moment"
    said = f"the replacement of pod {pod_name(snapshot.job)} has not taken the room {where} yet"
    waits = condition(reasons.POD_BOUND_RESERVATION, False, reasons.WAIT_FOR_POD_BIND_RESERVATION, said)
    plan = show(snapshot, now, conditions=(evicted, waits), reason=reasons.WAIT_FOR_POD_BIND_RESERVATION, message=said)
    closed = not room.is_open(reservation)
    return msgspec.structs.replace(plan, open_reservation=closed, informs=not closed, next_look=FOREIGN_EVERY)


def _await_ready(snapshot: JobSnapshot, replacement: Pod, evicted: Document, now: float) -> JobPlan:
    name = f"{replacement.namespace}/{replacement.name}"
    conditions = (evicted, *bound_conditions(snapshot, replacement))
    fields = {"podRef": reference_to(replacement), "nodeName": replacement.spec.node_name}
    if is_ready(replacement) and snapshot.pod is None and says_it_is_taken(snapshot, replacement):
        message = f"pod {pod_name(snapshot.job)} is replaced by {name} on node {replacement.spec.node_name}"
        return succeed(snapshot, message, now, conditions=conditions, **fields)
    waits = f"pod {name} on node {replacement.spec.node_name} is not ready yet"
    if is_ready(replacement):
        waits = f"pod {name} is ready on node {replacement.spec.node_name}; pod {pod_name(snapshot.job)} has not ended yet"
    return show(snapshot, now, conditions=conditions, reason=None, message=waits, **fields)


def _keeps_name(snapshot: JobSnapshot) -> bool:
    owner = status_of(snapshot.job).controller_ref
    return owner is not None and ((owner.api_version or "").rpartition("/")[0], owner.kind) == STATEFUL_SET
