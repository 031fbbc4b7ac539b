"""What counts of a pod for the one that keeps it."""

from __future__ import annotations

from herder.api.core import Pod
from herder.api.core.pods import PodCondition

FINISHED = ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """It runs, or is going to. One that has ended, or is told to, is made up for at once."""
    return pod.status.phase not in FINISHED and not pod.being_deleted


def is_terminating(pod: Pod) -> bool:
    return pod.being_deleted and pod.status.phase not in FINISHED


def ready_condition(pod: Pod) -> PodCondition | None:
    """The condition where it is true."""
    return next((one for one in pod.status.conditions if one.type == "Ready" and one.status == "True"), None)


def is_ready(pod: Pod) -> bool:
    return ready_condition(pod) is not None


def ready_since(pod: Pod) -> float | None:
    condition = ready_condition(pod)
    time = condition.last_transition_time if condition is not None else None
    return time.timestamp() if time is not None else None


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until it has been ready for long enough, 0 where it has; None where it is not ready."""
    if not is_ready(pod):
        return None
    if min_ready_seconds == 0:
        return 0.0
    since = ready_since(pod)
    return None if since is None else max(0.0, since + min_ready_seconds - now)
