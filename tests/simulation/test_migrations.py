"""Migrations at the mercy of every fault at every write of the controllers, and limits that hold whatever happens."""

from herder.rules.migration import Limits
from tests.simulation.faults import ClockJumpsAhead
from tests.simulation.herd.limits import crowd
from tests.simulation.herd.scenario import MOVED
from tests.simulation.matrix import matrix_for

# By a clock that jumps ahead the time for a target may be over: that is what deadlines are.
test_moves_survive_the_faults_of_controllers = matrix_for(MOVED, every=12, but=(ClockJumpsAhead,))


def test_no_limit_is_ever_exceeded(seed: int) -> None:
    crowded = crowd(seed)
    assert not crowded.wrong, "\n".join(crowded.wrong[:10])
    assert crowded.finished >= 200
    assert crowded.leaders >= 3
    assert crowded.most == Limits(cluster=9, outbound=3, inbound=3), "the highest should have been reached"
    assert crowded.above > 0, "some were under way when their limit was lowered"
