"""Pools at the mercy of every fault at every write, and of days full of trouble."""

import pytest

from tests.simulation.faults import ClockJumpsAhead
from tests.simulation.matrix import matrix_for
from tests.simulation.pools.changes import HEALED_WITH_A_DISK, REPROVISIONED, REVISED, ROLLED_BACK
from tests.simulation.pools.journeys import travel
from tests.simulation.pools.scenario import DETACHED, HEALED, PRESERVED, ROLLED
from tests.simulation.pools.storms import faults_of, weather

# Every fault at every write takes too long for every day: with another seed it is at others, and with many seeds at all of them.
test_a_rollout_survives_the_faults_of_controllers = matrix_for(ROLLED, every=20)
test_preserved_volumes_survive_the_faults_of_controllers = matrix_for(PRESERVED, every=16)
test_a_detached_machine_survives_the_faults_of_controllers = matrix_for(DETACHED, every=16)
test_revisions_are_kept_and_forgotten_whatever_the_faults_of_controllers = matrix_for(REVISED, every=20)
test_a_failed_rollout_goes_back_whatever_the_faults_of_controllers = matrix_for(ROLLED_BACK, every=30)
test_a_disk_is_made_again_once_whatever_the_faults_of_controllers = matrix_for(REPROVISIONED, every=40)
# Who has been well for ten minutes has nothing written down any more: so it is where the clock jumps over them.
test_a_machine_is_healed_once_whatever_the_faults_of_controllers = matrix_for(HEALED, every=40, but=(ClockJumpsAhead,))
test_a_disk_is_healed_once_whatever_the_faults_of_controllers = matrix_for(HEALED_WITH_A_DISK, every=40, but=(ClockJumpsAhead,))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_no_pool_is_taken_down_and_no_disk_is_lost_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.restarts > 0
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_nobody_else_is_touched_and_nothing_is_wiped_on_a_silent_node_however_machines_travel(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    travelled = travel(chosen)
    assert not travelled.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(travelled.wrong)
