"""The example controller at the mercy of every fault, at every write; and the same with mistakes in it, which have to be found."""

import pytest

from tests.simulation import faults
from tests.simulation.example import broken
from tests.simulation.example.controller import FlockController
from tests.simulation.example.scenario import flocks, make
from tests.simulation.faults import ON_WRITES, OnWrite
from tests.simulation.matrix import MANY_SEEDS, complaints, matrix_for, stride, struck

test_every_fault_at_every_write_leads_to_the_same_end = matrix_for(flocks())

# The mistake, the fault that shows it (none: it shows without any), and what is said about it.
MISTAKES: list[tuple[type[FlockController], type[OnWrite] | None, str]] = [
    (broken.GeneratesNames, faults.StaleCache, "there should be 2 sheep, but there are"),
    (broken.GeneratesNames, faults.AnswerLost, "was made 1 times, without the fault 0 times"),
    (broken.PutsStaleStatus, faults.Disturbed, "what somebody else wrote into the status is gone"),
    (broken.SaysNoGeneration, None, "status.observedGeneration is None, but the spec is of generation 1"),
    (broken.ForgetsToTryAgain, faults.Refused, "there should be 2 sheep, but there are 0"),
    (broken.ForgetsToTryAgain, faults.Conflicted, "there should be 2 sheep, but there are 0"),
    (broken.ForgetsTheTime, None, "the flock should rest, but its phase is Grazing"),
    (broken.CountsInMemory, faults.Refused, "there should be 2 sheep, but there are 1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mistake", "fault", "words"), MISTAKES, ids=lambda one: getattr(one, "__name__", ""))
def test_the_matrix_finds_a_mistake(mistake: type[FlockController], fault: type[OnWrite] | None, words: str, seed: int) -> None:
    found = list(complaints(flocks(mistake, (make,)), seed, [fault] if fault else []))
    assert any(words in one for one in found), "\n".join(found)


@pytest.mark.parametrize("every", [1, 9, 20, 40])
def test_over_many_seeds_every_fault_befalls_every_write(every: int) -> None:
    for kind in ON_WRITES:
        one = [number for seed in range(MANY_SEEDS) for number in struck(kind, 130, seed, stride(every, MANY_SEEDS))]
        assert set(one) == set(range(1, 131))
    assert len(struck(ON_WRITES[0], 130, 0, stride(every, 1))) <= 130 // every + 1
