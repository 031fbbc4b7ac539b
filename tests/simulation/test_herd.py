"""Machines, instances, scheduler and nodes at the mercy of every fault at every write."""

import pytest

from tests.simulation.cluster import NODES
from tests.simulation.herd.scenario import PAUSED, STARTED_AND_RESTARTED, STOPPED
from tests.simulation.herd.storms import faults_of, weather
from tests.simulation.matrix import matrix_for

# Every fault at every write takes a quarter of an hour: each day some of them, and with another seed others.
test_a_restart_survives_the_faults_of_controllers = matrix_for(STARTED_AND_RESTARTED, every=8)
test_an_end_survives_the_faults_of_controllers = matrix_for(STOPPED, every=8)
test_a_pause_and_a_lost_pod_survive_the_faults_of_controllers = matrix_for(PAUSED, every=8)
test_a_restart_survives_the_faults_of_nodes = matrix_for(STARTED_AND_RESTARTED, NODES, every=5)
test_an_end_survives_the_faults_of_nodes = matrix_for(STOPPED, NODES, every=5)
test_a_pause_and_a_lost_pod_survive_the_faults_of_nodes = matrix_for(PAUSED, NODES, every=5)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_no_guest_runs_twice_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.guests_started >= 3
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
