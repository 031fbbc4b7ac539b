"""Machines, instances, scheduler and nodes at the mercy of every fault at every write."""

import pytest

from tests.simulation.cluster import NODES
from tests.simulation.herd.scenario import PAUSED, STARTED_AND_RESTARTED, STOPPED
from tests.simulation.herd.storms import faults_of, weather
from tests.simulation.matrix import matrix_for

test_a_restart_survives_every_fault_of_the_controllers = matrix_for(STARTED_AND_RESTARTED)
test_an_end_survives_every_fault_of_the_controllers = matrix_for(STOPPED)
test_a_pause_and_a_lost_pod_survive_every_fault_of_the_controllers = matrix_for(PAUSED)
test_a_restart_survives_every_fault_of_the_nodes = matrix_for(STARTED_AND_RESTARTED, NODES)
test_an_end_survives_every_fault_of_the_nodes = matrix_for(STOPPED, NODES)
test_a_pause_and_a_lost_pod_survive_every_fault_of_the_nodes = matrix_for(PAUSED, NODES)


@pytest.mark.parametrize("number", range(10))
def test_no_guest_runs_twice_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.guests_started >= 3
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
