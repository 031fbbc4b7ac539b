"""What a node should do about one pod that is bound to it. Pure, as the rules are."""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import ENDED
from herder.nodes.health import HEALTHY, Health
from herder.nodes.moving.moving import STAYS, Moving
from herder.nodes.runtimes.base import GuestStatus
from herder.rules.instances.launcher import GRACE_BEYOND_GUEST

Action = Literal["start", "shut_down", "remove", "pause", "resume", "finish"]
# Of a pod's grace, for the node to switch off and to say so.
# Whether somebody still saves the memory of a guest that stands still for that.
LOOK_AT_SAVED = 2.0
SWITCH_OFF_BEFORE_END = float(GRACE_BEYOND_GUEST)


class PodPlan(msgspec.Struct, frozen=True):
    """Actions in this order; between them and `finish` (the pod may go for good) the status is written."""

    actions: tuple[Action, ...] = ()
    # What the pod's status shall tell; None leaves it as it is.
    shown: GuestStatus | None = None
    next_look: float | None = None


def plan_pod(
    pod: Pod, status: GuestStatus | None, now: float, health: Health = HEALTHY, no_room: str = "", moving: Moving = STAYS
) -> PodPlan:
    if pod.being_deleted:
        return _ending(pod, status, now, moving)
    if pod.status.phase in ("Succeeded", "Failed"):
        # It has ended for everybody. Nothing may run on; what it wrote can still be read.
        return PodPlan(("remove",) if status is not None and status.state not in ENDED else ())
    if status is None:
        return _starting(pod, no_room)
    if status.state in ENDED:
        return PodPlan(shown=status)
    if health.dead:
        reason = reasons.LIVENESS_PROBE_FAILED if health.alive else reasons.LIVENESS_PROBE_NEVER_PASSED
        ended = msgspec.structs.replace(status, state="Failed", reason=reason, message=health.dead)
        return PodPlan(("remove",), shown=ended)
    saved = status.reason == reasons.SAVING_MEMORY
    return PodPlan(_pause(pod, status, moving), shown=status, next_look=LOOK_AT_SAVED if saved else None)


def _starting(pod: Pod, no_room: str) -> PodPlan:
    if pod.status.container_statuses and any(one.state.running for one in pod.status.container_statuses):
        # It ran, says the API, and here nobody knows of it: the machine was restarted. It must not start a second time unnoticed.
        lost = GuestStatus("Failed", reasons.GUEST_LOST, "the node no longer knows of it: the machine was restarted")
        return PodPlan(shown=lost)
    if no_room:
        return PodPlan(shown=GuestStatus("Failed", no_room.split(" ", 1)[0], no_room.split(" ", 1)[-1]))
    return PodPlan(("start",))


def _ending(pod: Pod, status: GuestStatus | None, now: float, moving: Moving) -> PodPlan:
    if moving.owed:
        # Its guest waits elsewhere for our word, which only this pod's agent can give.
        return PodPlan(shown=status)
    if status is None or status.state in ENDED or status.state == "Incoming":
        # One that waits for its memory has nothing to shut down.
        return PodPlan(("remove", "finish"), shown=None if status is not None and status.state == "Incoming" else status)
    left = _switch_off_in(pod, now)
    if left <= 0:
        ended = msgspec.structs.replace(status, state="Failed", reason=reasons.SWITCHED_OFF, message="it did not end in its time")
        return PodPlan(("remove", "finish"), shown=ended)
    # A guest on its way out is called back first; what is given away meanwhile is no longer ours to end.
    return PodPlan(() if moving.under_way else ("shut_down",), next_look=left)


def _switch_off_in(pod: Pod, now: float) -> float:
    """Seconds until patience ends: a little before the pod's own grace does."""
    end = pod.metadata.deletion_timestamp
    grace = pod.metadata.deletion_grace_period_seconds or 0
    if end is None or grace == 0:
        return 0.0
    kept_back = _kept_back(pod, grace)
    if grace <= kept_back:
        return 0.0
    # Times of the API are cut to whole seconds: without that second the guest would have less than it was promised.
    return end.timestamp() - kept_back + min(1.0, kept_back) - now


def _kept_back(pod: Pod, grace: int) -> float:
    """What a guest's pod has beyond the guest's own time is not for the guest, however short that is. Where somebody has given it
    another time than its own, half of that is the guest's at least; and so it is with pods that are not made for guests."""
    if labels.GUEST in pod.annotations and grace == pod.spec.termination_grace_period_seconds:
        return SWITCH_OFF_BEFORE_END
    return min(SWITCH_OFF_BEFORE_END, grace / 2)


def _pause(pod: Pod, status: GuestStatus, moving: Moving) -> tuple[Action, ...]:
    wish = pod.annotations.get(labels.PAUSE)
    waits_for_room = status.state == "Paused" and status.reason == reasons.INSUFFICIENT_STORAGE
    if status.reason == reasons.SAVING_MEMORY:
        return ()  # it stands still for that, whatever else is wished
    if wish == "true" and (status.state == "Running" or waits_for_room):
        return ("pause",)
    if wish == "false" and status.state == "Paused" and not moving.held and not waits_for_room:
        return ("resume",)
    return ()
