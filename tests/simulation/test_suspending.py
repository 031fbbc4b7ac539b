"""Machines that are suspended and resumed, at the mercy of every fault at every write: memory is used once, no guest runs backwards
or twice, and who is suspended has nothing on any node."""

from __future__ import annotations

import functools

import pytest

from tests.simulation.cluster import NODES
from tests.simulation.faults import ON_WRITES, AnswerLost, CrashAfter, CrashBefore, OnWrite
from tests.simulation.herd.storms import faults_of
from tests.simulation.matrix import matrix_for, stride, struck
from tests.simulation.suspension.scenario import ASLEEP, TWICE, Suffered, suffer
from tests.simulation.suspension.storms import weather

# Who saves and resumes is a node. Controllers may die as they like: no memory is lost by it.
test_whoever_was_suspended_goes_on_whatever_the_faults_of_controllers = matrix_for(TWICE, every=60)
test_whoever_is_suspended_stays_so_whatever_the_faults_of_controllers = matrix_for(ASLEEP, every=60)
EVERY = 24
KILLED = (CrashBefore, CrashAfter)


@functools.cache
def without_faults(seed: int) -> Suffered:
    return suffer(TWICE, seed, [], NODES)


def test_its_memory_is_used_each_time_and_it_never_boots_again(seed: int) -> None:
    suffered = without_faults(seed)
    assert (suffered.wrong, suffered.boots, suffered.resumed) == ([], 0, 2)


def problems(fault: OnWrite, seed: int) -> list[str]:
    """A simulated node that dies has forgotten what it was about to say: that may cost the memory. Nothing else may."""
    suffered = suffer(TWICE, seed, [fault], NODES)
    lost = ["its memory was lost"] if suffered.boots and not isinstance(fault, KILLED) else []
    write = without_faults(seed).writes[fault.write - 1]
    return [f"{fault} at {write}: {one}" for one in (*suffered.wrong, *lost)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_WRITES, ids=lambda kind: kind.__name__)
def test_whatever_the_faults_of_nodes(kind: type[OnWrite], seed: int, seeds: int) -> None:
    clean = without_faults(seed)
    numbers = [one for one in struck(kind, len(clean.writes), seed, stride(EVERY, seeds)) if one > clean.prepared]
    found = [one for number in numbers for one in problems(kind(NODES, number), seed)]
    assert not found, "\n".join(found[:10])


def test_a_node_that_dies_while_it_saves_does_not_leave_its_guest_paused(first_seed: int) -> None:
    """It stood still only to be saved: whoever finds it so must not take that for its owner's wish."""
    saving = next(number for number, one in enumerate(without_faults(first_seed).writes, 1) if "/pods/save-" in one)
    assert problems(CrashAfter(NODES, saving + 2), first_seed) == []


def test_a_node_that_is_not_answered_when_it_says_that_it_resumes_does_so_all_the_same(first_seed: int) -> None:
    clean = without_faults(first_seed)
    last = [number for number, one in enumerate(clean.writes, 1) if "/pods/virt-launcher-" in one][-2:]
    assert [one for number in last for one in problems(AnswerLost(NODES, number), first_seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_no_memory_is_used_twice_and_no_guest_runs_backwards_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.boots >= 2
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
