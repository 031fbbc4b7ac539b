"""Pools at the mercy of every fault at every write, and of days full of trouble."""

import pytest

from tests.simulation.faults import ClockJumpsAhead
from tests.simulation.matrix import matrix_for
from tests.simulation.pools.scenario import DETACHED, HEALED, PRESERVED, ROLLED
from tests.simulation.pools.storms import faults_of, weather

# Every fault at every write takes too long for every day: with another seed it is at others.
test_a_rollout_survives_the_faults_of_controllers = matrix_for(ROLLED, every=14)
test_preserved_volumes_survive_the_faults_of_controllers = matrix_for(PRESERVED, every=9)
test_a_detached_machine_survives_the_faults_of_controllers = matrix_for(DETACHED, every=9)
# Who has been well for ten minutes has nothing written down any more: so it is where the clock jumps over them.
test_a_machine_is_healed_once_whatever_the_faults_of_controllers = matrix_for(HEALED, every=24, but=(ClockJumpsAhead,))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_no_pool_is_taken_down_and_no_disk_is_lost_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.restarts > 0
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
