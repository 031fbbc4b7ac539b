"""Migrations at the mercy of every fault at every write of the controllers, and limits that hold whatever happens."""

import pytest

from herder.rules.migration import Limits
from tests.simulation.cluster import CONTROLLERS
from tests.simulation.faults import ClockJumpsAhead, TooSlow
from tests.simulation.herd.limits import crowd
from tests.simulation.herd.scenario import MOVED
from tests.simulation.matrix import matrix_for, play
from tests.simulation.outcome import differences

# By a clock that jumps ahead the time for a target may be over: that is what deadlines are.
test_moves_survive_the_faults_of_controllers = matrix_for(MOVED, every=12, but=(ClockJumpsAhead,))


@pytest.mark.slow
def test_a_status_that_arrives_late_does_not_take_the_place_of_a_newer_one(seed: int) -> None:
    """What the nodes told on the way is told once: nobody could find it out again."""
    clean = play(MOVED, seed)
    late = [TooSlow(CONTROLLERS, number) for number, write in enumerate(clean.writes, 1) if "migrations/there/status" in write]
    assert len(late) > 5
    found = [f"{fault}: {problem}" for fault in late for problem in differences(clean, play(MOVED, seed, [fault]))]
    assert not found, "\n".join(found[:10])


@pytest.mark.slow
def test_no_limit_is_ever_exceeded(seed: int) -> None:
    crowded = crowd(seed)
    assert not crowded.wrong, "\n".join(crowded.wrong[:10])
    assert crowded.finished >= 200
    assert crowded.leaders >= 3
    assert crowded.most == Limits(cluster=9, outbound=3, inbound=3), "the highest should have been reached"
    assert crowded.above > 0, "some were under way when their limit was lowered"
