"""Conditions of pods and of disruption budgets, as the engine itself reads and writes them. Pure."""

from __future__ import annotations

from typing import Any

from herder.api.reasons import DISRUPTION_ALLOWED, SYNC_FAILED
from herder.api.world import timestamp

Document = dict[str, Any]


def condition_of(status: Document, kind: str) -> Document | None:
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), None)


def is_ready(pod: Document) -> bool:
    ready = condition_of(pod.get("status") or {}, "Ready")
    return ready is not None and ready.get("status") == "True"


def set_disruption_allowed(budget: Document, now: float, failure: str = "") -> None:
    """Whether the budget allows anything, as its status says; `failure`: why that could not be found out."""
    status: Document = budget["status"]
    allowed = status.get("disruptionsAllowed", 0) > 0
    reason = SYNC_FAILED if failure else "SufficientPods" if allowed else "InsufficientPods"
    value = "True" if allowed and not failure else "False"
    before = condition_of(status, DISRUPTION_ALLOWED)
    since = before["lastTransitionTime"] if before is not None and before.get("status") == value else timestamp(now)
    condition = {
        "type": DISRUPTION_ALLOWED,
        "status": value,
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": since,
        "reason": reason,
        "message": failure,
    }
    others = [one for one in status.get("conditions") or () if one.get("type") != DISRUPTION_ALLOWED]
    status["conditions"] = [*others, condition]
