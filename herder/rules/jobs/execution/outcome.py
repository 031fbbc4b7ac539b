"""Plans that only tell: how far a job is, or how it ended. What has to be undone then, the next look finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from herder.api import reasons
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import changed_status, finished_status, has, status_of
from herder.rules.plans import Document, Event


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
    return JobPlan(status=status, events=_events(snapshot, conditions))


def succeed(snapshot: JobSnapshot, message: str, now: float, *, conditions: Sequence[Document], **fields: Any) -> JobPlan:
    step = _step(snapshot, conditions)
    status = finished_status(snapshot.job, "Succeed", None, message, now, tuple(conditions) or None, status=step, **fields)
    return JobPlan(status=status, events=(*_events(snapshot, conditions), Event("Normal", "Succeed", message)))


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
    """One for each condition that holds and did not before; and one where no room was found."""
    reached = [one for one in conditions if one["status"] == "True" and not has(snapshot.job, one["type"])]
    told = tuple(Event("Normal", one["type"], one["message"] or _SAID[one["type"]]) for one in reached)
    unplaced = [
        one for one in conditions if one["type"] == reasons.RESERVATION_SCHEDULED and one["status"] == "False" and one["message"]
    ]
    news = [one for one in unplaced if not has(snapshot.job, one["type"], "False")]
    return (*told, *(Event("Warning", reasons.UNSCHEDULABLE, one["message"]) for one in news))


_SAID = {
    reasons.RESERVATION_CREATED: "room is being reserved for the replacement",
    reasons.RESERVATION_SCHEDULED: "room is reserved",
    reasons.EVICTION: "the pod is gone",
    reasons.POD_SCHEDULED: "the replacement has a node",
    reasons.POD_BOUND_RESERVATION: "the replacement took the room",
    reasons.RESERVATION_BOUND: "the reservation says that it is taken",
}
