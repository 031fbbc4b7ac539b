"""Plans that only tell: how far a job is, or how it ended. What has to be undone then, the next look finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from herder.api import reasons
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import changed_status, finished_status, has, status_of
from herder.rules.plans import Document, Event, find


def show(
    snapshot: JobSnapshot,
    now: float,
    *,
    conditions: Sequence[Document],
    reason: str | None,
    message: str | None,
    **fields: Any,
) -> JobPlan:
    """How far it is. An empty tuple of conditions takes all of them away."""
    job = snapshot.job
    step = _step(snapshot, conditions)
    status = changed_status(job, now, conditions=tuple(conditions), reason=reason, message=message, status=step, **fields)
    return JobPlan(status=status, events=_events(snapshot, conditions), informs=True)


def succeed(snapshot: JobSnapshot, message: str, now: float, *, conditions: Sequence[Document], **fields: Any) -> JobPlan:
    step = _step(snapshot, conditions)
    status = finished_status(snapshot.job, "Succeed", None, message, now, tuple(conditions) or None, status=step, **fields)
    return JobPlan(status=status, events=(Event("Normal", "Succeed", message),))


def fail(
    snapshot: JobSnapshot, reason: str, message: str, now: float, *, conditions: Sequence[Document] = (), **fields: Any
) -> JobPlan:
    step = _step(snapshot, conditions) or status_of(snapshot.job).status
    status = finished_status(snapshot.job, "Failed", reason, message, now, tuple(conditions) or None, status=step, **fields)
    return JobPlan(status=status, events=(Event("Warning", reason, message),))


def _step(snapshot: JobSnapshot, conditions: Sequence[Document]) -> str | None:
    """The condition that was reached last."""
    reached = [one["type"] for one in conditions if one["status"] == "True"]
    return reached[-1] if reached else (status_of(snapshot.job).status if conditions else None)


def _events(snapshot: JobSnapshot, conditions: Sequence[Document]) -> tuple[Event, ...]:
    """One, of all that was reached since the last: jobs are not to drown a cluster in events. The conditions have it all."""
    job = snapshot.job
    unplaced = [one for one in conditions if (one["type"], one["status"]) == (reasons.RESERVATION_SCHEDULED, "False")]
    # The reservation is there for a moment before the scheduler has words for it.
    known = find(status_of(job).conditions, reasons.RESERVATION_SCHEDULED)
    news = [one for one in unplaced if one["message"] and (known is None or known.status != "False" or not known.message)]
    if news:
        return (Event("Warning", reasons.UNSCHEDULABLE, news[0]["message"]),)
    reached = [one for one in conditions if one["status"] == "True" and not has(job, one["type"])]
    message = "; ".join(" ".join(part for part in (_SAID[one["type"]], one["message"]) if part) for one in reached)
    return (Event("Normal", reached[-1]["type"], message),) if reached else ()


_SAID = {
    reasons.RESERVATION_CREATED: "a reservation is made",
    reasons.RESERVATION_SCHEDULED: "room is held",
    reasons.EVICTION: "the pod is gone",
    reasons.POD_SCHEDULED: "the replacement has its place",
    reasons.POD_BOUND_RESERVATION: "it took the room",
    reasons.RESERVATION_BOUND: "the reservation says so",
}
