"""How far a number may go at once: between minReplicas and maxReplicas, and no faster than the policies allow."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from herder.api import reasons
from herder.api.core.autoscaling import HPAScalingPolicy, HPAScalingRules
from herder.rules.autoscaling.replica_calculator import MOST_REPLICAS
from herder.rules.autoscaling.stabilization import History, Reason, ScaleEvent

WITHIN_RANGE: Reason = (reasons.DESIRED_WITHIN_RANGE, "the desired count is within the acceptable range")
TOO_FAST_UP: Reason = (
    reasons.SCALE_UP_LIMIT,
    "the desired replica count is increasing faster than the maximum scale rate",
)
TOO_FAST_DOWN: Reason = (
    reasons.SCALE_DOWN_LIMIT,
    "the desired replica count is decreasing faster than the maximum scale rate",
)
TOO_MANY: Reason = (reasons.TOO_MANY_REPLICAS, "the desired replica count is more than the maximum replica count")
TOO_FEW: Reason = (reasons.TOO_FEW_REPLICAS, "the desired replica count is less than the minimum replica count")
# Without a behavior: twice as many at once, or up to this number.
SCALE_UP_FACTOR = 2
SCALE_UP_MINIMUM = 4


class Bounds(msgspec.Struct, frozen=True):
    least: int
    most: int


def limited(current: int, desired: int, bounds: Bounds) -> tuple[int, Reason]:
    """Without a behavior."""
    fastest = max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM)
    if desired < bounds.least:
        return bounds.least, TOO_FEW
    if desired > min(bounds.most, fastest):
        return (fastest, TOO_FAST_UP) if bounds.most > fastest else (bounds.most, TOO_MANY)
    return desired, WITHIN_RANGE


def limited_by_behavior(
    current: int, desired: int, bounds: Bounds, up: HPAScalingRules, down: HPAScalingRules, history: History, now: float
) -> tuple[int, Reason]:
    if desired > current:
        fastest = max(_up_limit(current, up, history, now), current)
        if desired > min(bounds.most, fastest):
            return (fastest, TOO_FAST_UP) if bounds.most > fastest else (bounds.most, TOO_MANY)
    elif desired < current:
        fastest = min(_down_limit(current, down, history, now), current)
        if desired < max(bounds.least, fastest):
            return (fastest, TOO_FAST_DOWN) if bounds.least < fastest else (bounds.least, TOO_FEW)
    return desired, WITHIN_RANGE


def _up_limit(current: int, rules: HPAScalingRules, history: History, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    proposed = [_most_after(policy, _at_start(current, policy, history, now)) for policy in rules.policies]
    chosen = min(proposed, default=current) if rules.select_policy == "Min" else max(proposed, default=current)
    return min(chosen, MOST_REPLICAS)


def _down_limit(current: int, rules: HPAScalingRules, history: History, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    proposed = [_least_after(policy, _at_start(current, policy, history, now)) for policy in rules.policies]
    # The smallest change leaves the most.
    return max(proposed, default=current) if rules.select_policy == "Min" else min(proposed, default=current)


def _at_start(current: int, policy: HPAScalingPolicy, history: History, now: float) -> int:
    """How many there were when the policy's period began, as far as we changed it."""
    since = now - policy.period_seconds
    return current - _changed(history.ups, since) + _changed(history.downs, since)


def _changed(events: Iterable[ScaleEvent], since: float) -> int:
    return sum(one.change for one in events if one.at > since)


def _most_after(policy: HPAScalingPolicy, start: int) -> int:
    if policy.type == "Pods":
        return start + policy.value
    # Rounded up: else one pod would never become two.
    return math.ceil(start * (1 + policy.value / 100))


def _least_after(policy: HPAScalingPolicy, start: int) -> int:
    return start - policy.value if policy.type == "Pods" else int(start * (1 - policy.value / 100))
