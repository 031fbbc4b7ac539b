"""What a simulated guest uses of a resource over time: an amount, or a curve through amounts at given times."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from herder.api.duration import parse_seconds
from herder.api.quantity import parse_quantity

CPU_EXAMPLE = "500m, or amounts by time in rising order: 0s=100m,60s=900m"
MEMORY_EXAMPLE = "256Mi, or amounts by time in rising order: 0s=64Mi,60s=2Gi"
# All of a curve is looked at each time that somebody asks.
MOST_POINTS = 100
MOST_PROCESSORS = 10_000
MOST_BYTES = 1 << 50


class Point(msgspec.Struct, frozen=True):
    at: float  # seconds
    amount: float


class Curve(msgspec.Struct, frozen=True):
    """Straight from each point to the next; two of the same time are a jump. Before the first and after the last it is as there."""

    points: tuple[Point, ...]

    def at(self, seconds: float) -> float:
        before = self.points[0]
        for point in self.points:
            if point.at > seconds:
                return _between(before, point, seconds)
            before = point
        return before.amount

    def until(self, seconds: float) -> float:
        """All that was used from 0 on: the area below the curve."""
        used, before = 0.0, Point(0.0, self.points[0].amount)
        for point in self.points:
            if point.at > seconds:
                return used + _area(before, Point(seconds, _between(before, point, seconds)))
            used += _area(before, point)
            before = point
        return used + _area(before, Point(seconds, before.amount))


def constant(amount: float) -> Curve:
    return Curve((Point(0.0, amount),))


def read_cpu(text: str) -> Curve:
    """In processors. Raises ValueError."""
    return _read(text, lambda one: parse_quantity(one).nanos / 1e9, MOST_PROCESSORS)


def read_memory(text: str) -> Curve:
    """In bytes. Raises ValueError."""
    return _read(text, lambda one: parse_quantity(one).value(), MOST_BYTES)


def _read(text: str, amount_of: Callable[[str], float], most: float) -> Curve:
    parts = text.split(",", MOST_POINTS)
    if len(parts) > MOST_POINTS:
        raise ValueError(f"a curve has at most {MOST_POINTS} points")
    if len(parts) == 1 and "=" not in text:
        parts = [f"0s={text}"]
    points = tuple(_point(part, amount_of, most) for part in parts)
    if any(after.at < before.at for before, after in itertools.pairwise(points)):
        raise ValueError("the times of a curve rise")
    return Curve(points)


def _point(text: str, amount_of: Callable[[str], float], most: float) -> Point:
    time, equals, amount = text.partition("=")
    at, value = parse_seconds(time.strip()), amount_of(amount.strip())
    if not equals or at < 0 or not 0 <= value <= most:
        raise ValueError(text)
    return Point(at, value)


def _between(before: Point, after: Point, seconds: float) -> float:
    if seconds <= before.at:
        return before.amount
    return before.amount + (after.amount - before.amount) * (seconds - before.at) / (after.at - before.at)


def _area(before: Point, after: Point) -> float:
    return max(0.0, after.at - before.at) * (before.amount + after.amount) / 2


IDLE_CPU = constant(0.01)
IDLE_MEMORY = constant(64 << 20)
