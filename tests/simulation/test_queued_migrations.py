"""Migrations that wait cost nothing: they are called when it is their turn."""

import pytest

from tests.simulation.herd.queue import LIMIT, Seen, queued

COUNT = 1000


@pytest.fixture(scope="module")
def seen() -> Seen:
    found = queued(COUNT)
    assert (found.phases["Scheduling"], found.phases["Pending"]) == (LIMIT, COUNT - LIMIT)
    return found


def test_a_thousand_that_wait_are_neither_looked_at_nor_asked_for_in_an_hour(seen: Seen) -> None:
    assert (seen.hour.reconciles, seen.hour.requests) == (0, 0)


def test_one_that_ends_calls_the_next_and_nobody_else(seen: Seen) -> None:
    assert seen.begun_by_the_end == LIMIT
    assert seen.ended.reconciles <= 20
    assert seen.ended.requests <= 20


def test_each_that_comes_is_looked_at_a_few_times_however_many_wait(seen: Seen) -> None:
    assert seen.came.reconciles <= 4 * COUNT
    # That it has to wait, and why.
    assert seen.came.requests <= COUNT + 10 * LIMIT
