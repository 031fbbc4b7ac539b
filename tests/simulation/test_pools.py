"""Pools at the mercy of every fault at every write, and of days full of trouble."""

import pytest

from tests.simulation.cluster import NODES
from tests.simulation.faults import ClockJumpsAhead, CrashAfter, CrashBefore, OnWrite
from tests.simulation.matrix import matrix_for, stride, struck
from tests.simulation.pools.changes import HEALED_WITH_A_DISK, REPROVISIONED, REVISED, ROLLED_BACK
from tests.simulation.pools.journeys import travel
from tests.simulation.pools.memory import ONLINE, STANDBY
from tests.simulation.pools.scenario import DETACHED, HEALED, PRESERVED, ROLLED
from tests.simulation.pools.storms import faults_of, weather
from tests.simulation.suspension.scenario import suffer

# Every fault at every write takes too long for every day: with another seed it is at others, and with many seeds at all of them.
test_a_rollout_survives_the_faults_of_controllers = matrix_for(ROLLED, every=20)
test_preserved_volumes_survive_the_faults_of_controllers = matrix_for(PRESERVED, every=16)
test_memory_survives_the_faults_of_controllers_or_is_booted_without = matrix_for(ONLINE, every=40)
test_standbys_survive_the_faults_of_controllers = matrix_for(STANDBY, every=40)
test_a_detached_machine_survives_the_faults_of_controllers = matrix_for(DETACHED, every=16)
test_revisions_are_kept_and_forgotten_whatever_the_faults_of_controllers = matrix_for(REVISED, every=20)
# Where the clock jumps over the deadline a machine may go back before it was restarted, and nobody asks for that any more.
test_a_failed_rollout_goes_back_whatever_the_faults_of_controllers = matrix_for(ROLLED_BACK, every=30, but=(ClockJumpsAhead,))
test_a_disk_is_made_again_once_whatever_the_faults_of_controllers = matrix_for(REPROVISIONED, every=40)
# Who has been well for ten minutes has nothing written down any more: so it is where the clock jumps over them.
test_a_machine_is_healed_once_whatever_the_faults_of_controllers = matrix_for(HEALED, every=40, but=(ClockJumpsAhead,))
test_a_disk_is_healed_once_whatever_the_faults_of_controllers = matrix_for(HEALED_WITH_A_DISK, every=40, but=(ClockJumpsAhead,))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [CrashBefore, CrashAfter])
def test_node_dies_half_way_through_a_save(fault: type[OnWrite], seed: int, seeds: int) -> None:
    """Or through a resume: at every write of its own. The machine is taken, and comes back, with its memory or without."""
    clean = suffer(ONLINE, seed, [], NODES)
    assert (clean.wrong, clean.prepared < len(clean.writes)) == ([], True)
    numbers = [one for one in struck(fault, len(clean.writes), seed, stride(4, seeds)) if one > clean.prepared]
    found = [f"{number}: {one}" for number in numbers for one in suffer(ONLINE, seed, [fault(NODES, number)], NODES).wrong]
    assert numbers and not found, "\n".join(found)


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
