"""EvictDirectly (seed 004): who asks for it knows the risk. Nothing is reserved, and nobody waits for another pod."""

from __future__ import annotations

from herder.api import reasons
from herder.rules.jobs.execution.eviction import eviction_condition, is_evicted, pod_name, why_not_there
from herder.rules.jobs.execution.outcome import fail, show, succeed
from herder.rules.jobs.execution.plan import NOTHING, JobPlan
from herder.rules.jobs.execution.reservation_first import begin_eviction
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.strategy import Strategy


class _EvictDirectly:
    def committed(self, snapshot: JobSnapshot) -> bool:
        return is_evicted(snapshot)

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        if is_evicted(snapshot):
            return _await_end(snapshot, now)
        gone = why_not_there(snapshot)
        if gone is not None:
            return fail(snapshot, *gone, now)
        assert snapshot.pod is not None
        return begin_eviction(snapshot, snapshot.pod, now)

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        return NOTHING

    def settled(self, snapshot: JobSnapshot) -> bool:
        return True

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        return True


EVICT_DIRECTLY: Strategy = _EvictDirectly()


def _await_end(snapshot: JobSnapshot, now: float) -> JobPlan:
    evicted = eviction_condition(snapshot)
    if snapshot.pod is None:
        return succeed(snapshot, f"pod {pod_name(snapshot.job)} was evicted", now, conditions=(evicted,))
    said = f"pod {pod_name(snapshot.job)} is told to end, and has not ended yet"
    return show(snapshot, now, conditions=(evicted,), reason=reasons.EVICTING, message=said)
