"""What was recommended a while ago, and what was done: so that one sample does not undo what the last one did.

As in Kubernetes this is the controller's memory, and is gone with it: who leads anew takes the number that it finds for the first
recommendation.
"""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.core.autoscaling import HPAScalingRules

# Where nobody says another one: how long the highest recommendation holds on the way down.
DOWNSCALE_WINDOW = 300

Reason = tuple[str, str]
_LOWEST: Reason = (
    reasons.SCALE_UP_STABILIZED,
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_HIGHEST: Reason = (
    reasons.SCALE_DOWN_STABILIZED,
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


class Recommendation(msgspec.Struct, frozen=True):
    at: float
    replicas: int


class ScaleEvent(msgspec.Struct, frozen=True):
    """By how many replicas, up or down."""

    at: float
    change: int


class History(msgspec.Struct, frozen=True):
    """What is remembered of one autoscaler."""

    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()

    def begun(self, replicas: int, now: float) -> History:
        if self.recommendations:
            return self
        return msgspec.structs.replace(self, recommendations=(Recommendation(now, replicas),))

    def recommended(self, replicas: int, window: float, now: float) -> History:
        """With this one, and without those that are older than all windows."""
        kept = tuple(one for one in self.recommendations if one.at >= now - window)
        return msgspec.structs.replace(self, recommendations=(*kept, Recommendation(now, replicas)))

    def scaled(self, before: int, after: int, rules: HPAScalingRules, now: float) -> History:
        """`rules`: those of the direction that it went."""
        longest = max((policy.period_seconds for policy in rules.policies), default=0)
        events = self.ups if after > before else self.downs
        kept = (*(one for one in events if one.at >= now - longest), ScaleEvent(now, abs(after - before)))
        return msgspec.structs.replace(self, **{"ups" if after > before else "downs": kept})


def stabilize(history: History, desired: int, now: float) -> tuple[int, Reason | None]:
    """Without a behavior: the highest recommendation of the last minutes. And why it is another one."""
    recent = (one.replicas for one in history.recommendations if one.at >= now - DOWNSCALE_WINDOW)
    highest = max(recent, default=desired)
    return (highest, _HIGHEST) if highest > desired else (desired, None)


def stabilize_with_behavior(
    history: History, current: int, desired: int, up: int, down: int, now: float
) -> tuple[int, Reason | None]:
    """`up` and `down` are the windows: up no further than the lowest recommendation, down no further than the highest."""
    lowest = min((one.replicas for one in history.recommendations if one.at > now - up), default=desired)
    highest = max((one.replicas for one in history.recommendations if one.at > now - down), default=desired)
    stable = min(max(current, min(lowest, desired)), max(highest, desired))
    if stable == desired:
        return desired, None
    return stable, _LOWEST if desired >= current else _HIGHEST
