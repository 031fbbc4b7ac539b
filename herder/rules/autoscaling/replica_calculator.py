"""How many replicas one metric asks for.

The pods together should use what the target says, on average. What is not known of a pod must not make things worse: a pod without
a sample counts as one that would have kept us from going in this direction, and where that turns the direction, nothing is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from herder.api.core import Pod
from herder.rules.autoscaling.pods import Groups, MissingRequest, group_pods, requests_of
from herder.rules.autoscaling.snapshot import Usage

DEFAULT_TOLERANCE = 0.1
MOST_REPLICAS = 2**31 - 1


class Tolerances(msgspec.Struct, frozen=True):
    """How far off the target is close enough, as a share of it."""

    down: float = DEFAULT_TOLERANCE
    up: float = DEFAULT_TOLERANCE

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Calculated(msgspec.Struct, frozen=True):
    """`average` in thousandths, over the pods that count; `utilization` in percent of what they ask for."""

    replicas: int
    average: int
    utilization: int | None = None


class Measured(msgspec.Struct, frozen=True):
    """What is used, relative to what should be."""

    ratio: float
    average: int
    utilization: int | None = None


class NotCalculated(Exception):
    """Why there is no number."""


# What counts of each pod, in thousandths by name, as one number.
_Measure = Callable[[Mapping[str, int]], Measured]


def calculate_utilization(
    current: int, target: int, resource: str, pods: Sequence[Pod], usage: Mapping[str, Usage], tolerances: Tolerances, now: float
) -> Calculated:
    """`target`: percent of what the pods ask for."""
    groups, used = _known(pods, usage, resource, now)
    try:
        requests = requests_of(pods, resource)
    except MissingRequest as error:
        raise NotCalculated(str(error)) from None

    def measure(amounts: Mapping[str, int]) -> Measured:
        return _utilization(amounts, requests, target)

    # Going down, one of which nothing is known uses all that it asks for, or what it should use if that is more.
    full = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    return _calculate(current, groups, used, full, measure, tolerances)


def calculate_average(
    current: int, target: int, resource: str, pods: Sequence[Pod], usage: Mapping[str, Usage], tolerances: Tolerances, now: float
) -> Calculated:
    """`target`: what each pod should use, in thousandths."""
    groups, used = _known(pods, usage, resource, now)

    def measure(amounts: Mapping[str, int]) -> Measured:
        average = sum(amounts.values()) // len(amounts)
        return Measured(average / target, average)

    return _calculate(current, groups, used, dict.fromkeys(groups.missing, target), measure, tolerances)


def _known(pods: Sequence[Pod], usage: Mapping[str, Usage], resource: str, now: float) -> tuple[Groups, dict[str, int]]:
    if not pods:
        raise NotCalculated("no pods returned by selector while calculating replica count")
    groups = group_pods(pods, usage, resource, now)
    used = {name: usage[name].amounts[resource] for name in groups.ready}
    if not used:
        raise NotCalculated("did not receive metrics for targeted pods (pods might be unready)")
    return groups, used


def _utilization(amounts: Mapping[str, int], requests: Mapping[str, int], target: int) -> Measured:
    asked = sum(requests[name] for name in amounts)
    if asked == 0:
        raise NotCalculated("no metrics returned matched known pods")
    total = sum(amounts.values())
    utilization = min(total * 100 // asked, MOST_REPLICAS)
    return Measured(utilization / target, total // len(amounts), utilization)


def _calculate(
    current: int, groups: Groups, used: dict[str, int], full: Mapping[str, int], measure: _Measure, tolerances: Tolerances
) -> Calculated:
    """`full`: what those count for of which nothing is known, on the way down."""
    first = measure(used)

    def calculated(replicas: int) -> Calculated:
        return Calculated(replicas, first.average, first.utilization)

    grows_unready = bool(groups.unready) and first.ratio > 1.0
    if not grows_unready and not groups.missing:
        return calculated(current if tolerances.holds(first.ratio) else _rounded_up(first.ratio, len(groups.ready)))
    if first.ratio < 1.0:
        used.update(full)
    elif first.ratio > 1.0:
        used.update(dict.fromkeys(groups.missing, 0))
    if grows_unready:
        used.update(dict.fromkeys(groups.unready, 0))
    second = measure(used).ratio
    turned = (first.ratio < 1.0 < second) or (second < 1.0 < first.ratio)
    if turned or tolerances.holds(second):
        return calculated(current)
    replicas = _rounded_up(second, len(used))
    backwards = (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current)
    return calculated(current if backwards else replicas)


def _rounded_up(ratio: float, pods: int) -> int:
    return min(math.ceil(ratio * pods), MOST_REPLICAS)
