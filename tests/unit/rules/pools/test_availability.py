"""Which machines of a pool are available, and how many may be missed at once."""

from typing import Any

import pytest

from herder.rules.pools import availability

from .things import NOW, halted, member, pool, starting


@pytest.mark.parametrize(
    ("replicas", "max_unavailable", "most"),
    [
        (3, None, 1),
        (3, "25%", 1),
        (8, "25%", 2),
        (11, "25%", 2),
        (0, None, 1),
        (1, None, 1),
        (10, "1%", 1),
        (10, "100%", 10),
        (10, 4, 4),
        (10, "nonsense", 1),
        (10, -3, 1),
    ],
)
def test_a_share_is_rounded_down_and_is_at_least_one(replicas: int, max_unavailable: Any, most: int) -> None:
    spec = {} if max_unavailable is None else {"maxUnavailable": max_unavailable}
    assert availability.max_unavailable(pool(replicas, **spec)) == most


def test_who_is_not_ready_or_not_there_is_unavailable() -> None:
    counts = availability.count([member(1), starting(2)], 4, 0, NOW)
    assert (counts.ready, counts.available, counts.unavailable) == (1, 1, 3)


def test_who_is_ready_but_not_for_long_enough_is_unavailable_until_then() -> None:
    counts = availability.count([member(1), member(2, ready_since=NOW - 20)], 2, 30, NOW)
    assert (counts.ready, counts.available, counts.unavailable, counts.next_look) == (2, 1, 1, 10)
    assert availability.count([member(2, ready_since=NOW - 30)], 1, 30, NOW).unavailable == 0


def test_who_is_kept_off_is_not_missed() -> None:
    assert availability.count([member(1), halted(2)], 2, 0, NOW).unavailable == 0


def test_who_is_being_stopped_is_missed_until_it_is_off() -> None:
    stopping = member(2, off=True, ready=False, ready_since=0.0)
    assert availability.count([member(1), stopping], 2, 0, NOW).unavailable == 1
