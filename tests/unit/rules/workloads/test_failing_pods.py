"""A ReplicaSet whose pods are refused by every node does not fill the cluster with them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from herder.api.core import Pod
from herder.rules.workloads import ReplicaSetSnapshot, plan_replica_set

from .things import NOW, TEMPLATE, pod, replica_set


def failed(name: str, ago: float, lasted: float = 0.0, **more: Any) -> Pod:
    """One that was made so many seconds ago, and was on its node for so long."""
    return pod(name, phase="Failed", age=ago, lasted=lasted, **more)


def made(replicas: int, *pods: Pod, at: float = NOW) -> tuple[int, float | None]:
    plan = plan_replica_set(ReplicaSetSnapshot(replica_set(replicas=replicas), TEMPLATE, pods), at)
    return plan.create, plan.next_look


def test_pods_that_are_refused_again_and_again_are_made_ever_more_rarely() -> None:
    """An hour in which every pod fails at once, looked at whenever it is due and once a second besides."""
    pods: list[Pod] = []
    times: list[float] = []
    for second in range(3600):
        create, _ = made(1, *pods, at=NOW + second)
        for _ in range(create):
            times.append(second)
            pods.append(failed(f"p{len(pods)}", ago=-second))
    assert [later - before for before, later in pairwise(times)][:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert len(times) == 20


def test_it_is_looked_at_again_when_the_next_may_be_made() -> None:
    pods = [failed("a", ago=20), failed("b", ago=10), failed("c", ago=1)]
    assert made(1, *pods) == (0, 3.0), "the third in a row waits for four seconds"
    assert made(1, *pods, at=NOW + 3) == (1, None)


def test_those_that_fail_together_are_one_failure() -> None:
    """A node that was not itself for a second must not cost a hundred pods five minutes."""
    pods = [failed(f"p{number}", ago=0) for number in range(100)]
    assert made(100, *pods) == (0, 1.0)
    assert made(100, *pods, at=NOW + 1) == (100, None)


def test_only_the_places_of_those_that_failed_wait() -> None:
    bad = [failed("a", ago=3), failed("b", ago=1)]
    assert made(5, pod("fine", ready=50), *bad) == (3, 1.0)
    assert made(1, pod("fine", ready=50), *bad) == (0, None)


def test_one_that_ran_is_made_up_for_at_once_however_many_end() -> None:
    assert made(3, *(failed(f"p{number}", ago=300, lasted=300) for number in range(3))) == (3, None)


def test_how_long_it_waited_for_a_node_does_not_count() -> None:
    """Made a minute ago, on its node now, and refused there."""
    assert made(1, failed("a", ago=60, waited=60)) == (0, 1.0)


def test_whoever_deletes_the_failed_one_gets_the_next_now() -> None:
    assert made(1, failed("a", ago=4), failed("b", ago=0)) == (0, 2.0)
    assert made(1, failed("a", ago=4), failed("b", ago=0, deleted=True)) == (1, None)


def test_after_ten_quiet_minutes_it_begins_anew() -> None:
    old = [failed(f"p{number}", ago=3000 - 300 * number) for number in range(6)]
    assert made(1, *old, failed("now", ago=0)) == (0, 1.0)


def test_a_clock_that_is_ahead_keeps_no_place_for_longer() -> None:
    assert made(1, failed("a", ago=5, lasted=9)) == (1, None)
