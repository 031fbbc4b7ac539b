"""The three conditions of an autoscaler. One that a look says nothing about stays as it was."""

from __future__ import annotations

from herder.api import reasons
from herder.api.core import HorizontalPodAutoscaler
from herder.api.core.workloads import WorkloadCondition
from herder.rules.plans import Document, condition, moment, text_of

KINDS = (reasons.ABLE_TO_SCALE, reasons.SCALING_ACTIVE, reasons.SCALING_LIMITED)


class Conditions:
    """Collected on the way to a plan; the last word counts."""

    def __init__(self, autoscaler: HorizontalPodAutoscaler) -> None:
        self._known = {one.type: one for one in autoscaler.status.conditions if one.type in KINDS}
        self._said: dict[str, Document] = {}

    def able(self, holds: bool, reason: str, message: str) -> None:
        self._said[reasons.ABLE_TO_SCALE] = condition(reasons.ABLE_TO_SCALE, holds, reason, message)

    def active(self, holds: bool, reason: str, message: str) -> None:
        self._said[reasons.SCALING_ACTIVE] = condition(reasons.SCALING_ACTIVE, holds, reason, message)

    def limited(self, holds: bool, reason: str, message: str) -> None:
        self._said[reasons.SCALING_LIMITED] = condition(reasons.SCALING_LIMITED, holds, reason, message)

    def documents(self, now: float) -> list[Document]:
        shown = [self._shown(kind, now) for kind in KINDS]
        return [one for one in shown if one is not None]

    def _shown(self, kind: str, now: float) -> Document | None:
        known, said = self._known.get(kind), self._said.get(kind)
        if said is None:
            return None if known is None else _as_it_was(known)
        kept = known.last_transition_time if known is not None and known.status == said["status"] else None
        return {**said, "lastTransitionTime": text_of(kept or moment(now))}


def _as_it_was(known: WorkloadCondition) -> Document:
    since = {} if known.last_transition_time is None else {"lastTransitionTime": text_of(known.last_transition_time)}
    return {"type": known.type, "status": known.status, "reason": known.reason, "message": known.message, **since}
