"""Few pieces are read as they come, many together."""

from __future__ import annotations

from herder.kube.pacing import GROWTH, LONGEST, SMALL, WHILE, Pace

EVENT = 1000
# As timers are.
LATE = 0.0015


def wake_ups(pace: Pace, arrivals: list[float], size: int = EVENT) -> tuple[int, float]:
    """How often a reader wakes up for what comes at these times, and the longest that any of it waited."""
    number, longest, now = 0, 0.0, 0.0
    while arrivals:
        now = max(now, arrivals[0])
        longest = max(longest, now - arrivals[0])
        arrivals = [time for time in arrivals if time > now]
        number += 1
        if pause := pace.pause(now, size):
            now += pause + LATE
            pace.over(now)
    return number, longest


def every(seconds: float, count: int) -> list[float]:
    return [number * seconds for number in range(1, count + 1)]


def test_what_comes_now_and_then_never_waits() -> None:
    assert wake_ups(Pace(), every(0.5, 100)) == (100, 0)


def test_a_chain_of_steps_never_waits() -> None:
    assert wake_ups(Pace(), every(WHILE * 0.75, 100))[1] == 0


def test_many_are_read_together_and_none_waits_longer_than_a_while() -> None:
    number, longest = wake_ups(Pace(), every(0.0001, 10_000))
    assert number < 50
    assert longest <= LONGEST + LATE + 0.001


def test_a_short_storm_makes_nobody_wait_for_the_longest_while() -> None:
    assert wake_ups(Pace(), every(0.001, 20))[1] <= WHILE * GROWTH + LATE + 0.001


def test_after_a_storm_the_first_is_read_at_once() -> None:
    pace = Pace()
    wake_ups(pace, every(0.001, 100))
    assert wake_ups(pace, [10.0, 10.001]) == (2, 0)


def test_a_list_never_waits() -> None:
    assert wake_ups(Pace(), every(0.0001, 1000), SMALL)[1] == 0
