"""A job of a pod that has no node yet: room is reserved for that very pod, and nothing is evicted."""

from __future__ import annotations

from herder.api import reasons
from herder.api.core import Pod
from herder.rules.jobs.execution import room
from herder.rules.jobs.execution.eviction import pod_name, why_not_there
from herder.rules.jobs.execution.outcome import fail, show, succeed
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.replacement import bound_conditions, reference_to
from herder.rules.jobs.execution.reservation_first import reserve
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.strategy import Strategy
from herder.rules.plans import condition


class _Placement:
    def committed(self, snapshot: JobSnapshot) -> bool:
        """Nothing is taken from anybody, so it can end at any time."""
        return False

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        gone = why_not_there(snapshot)
        if gone is not None:
            return fail(snapshot, *gone, now)
        pod = snapshot.pod
        assert pod is not None
        if pod.spec.node_name:
            return _placed(snapshot, pod, now)
        return reserve(snapshot, now) or _open(snapshot, now)

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        return JobPlan(delete_reservation=room.release(snapshot))

    def settled(self, snapshot: JobSnapshot) -> bool:
        return True

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        return True


PLACEMENT: Strategy = _Placement()


def _open(snapshot: JobSnapshot, now: float) -> JobPlan:
    assert snapshot.reservation is not None
    node = snapshot.reservation.status.node_name
    said = f"pod {pod_name(snapshot.job)} has not taken the room on node {node} yet"
    waits = condition(reasons.POD_BOUND_RESERVATION, False, reasons.WAIT_FOR_POD_BIND_RESERVATION, said)
    conditions = (*room.look_at_room(snapshot).conditions, waits)
    plan = show(snapshot, now, conditions=conditions, reason=reasons.WAIT_FOR_POD_BIND_RESERVATION, message=said)
    return JobPlan(status=plan.status, events=plan.events, open_reservation=not room.is_open(snapshot.reservation))


def _placed(snapshot: JobSnapshot, pod: Pod, now: float) -> JobPlan:
    """By our room or without it."""
    took = any(taker.uid == pod.uid for taker in snapshot.takers)
    scheduled = condition(reasons.POD_SCHEDULED, True, reasons.POD_SCHEDULED, f"on node {pod.spec.node_name}")
    conditions = tuple(bound_conditions(snapshot, pod)) if took else (scheduled,)
    message = f"pod {pod_name(snapshot.job)} has its place on node {pod.spec.node_name}"
    fields = {"podRef": reference_to(pod), "nodeName": pod.spec.node_name}
    return succeed(snapshot, message, now, conditions=conditions, **fields)
