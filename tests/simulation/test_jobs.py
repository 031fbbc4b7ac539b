"""Jobs at the mercy of every fault at every write, and of days full of trouble."""

import pytest

from tests.simulation.cluster import NODES
from tests.simulation.faults import ClockJumpsAhead, CrashAfter, CrashBefore
from tests.simulation.jobs.scenario import EVICTED, GIVEN_UP, MOVED, OVERTAKEN, RETURNED
from tests.simulation.jobs.storms import faults_of, weather
from tests.simulation.jobs.strategies import DELETED, GIVEN, MOVED_ALIVE, PLACED, SURGED
from tests.simulation.matrix import MANY_SEEDS, matrix_for

# Every fault at every write takes too long for every day: `make simulation` has seeds enough for all of them, and one seed takes a
# share of each fault's. On the way a ledger looks at limits, budgets and who is told to end.
SHARE = MANY_SEEDS
test_a_pod_that_is_moved_survives_the_faults_of_controllers = matrix_for(MOVED, every=9)
test_a_pod_that_returns_under_its_name_survives_the_faults_of_controllers = matrix_for(RETURNED, every=17)
test_a_pod_that_is_evicted_directly_survives_the_faults_of_controllers = matrix_for(EVICTED, every=9)
test_jobs_that_are_given_up_survive_the_faults_of_controllers = matrix_for(GIVEN_UP, every=17)
test_jobs_that_are_overtaken_survive_the_faults_of_controllers = matrix_for(OVERTAKEN, every=17)
test_a_replacement_that_comes_first_survives_the_faults_of_controllers = matrix_for(SURGED, every=SHARE)
test_a_pod_that_goes_to_given_room_survives_the_faults_of_controllers = matrix_for(GIVEN, every=SHARE)
test_pods_that_are_deleted_within_a_budget_survive_the_faults_of_controllers = matrix_for(DELETED, every=SHARE)
test_a_pod_that_has_no_node_yet_survives_the_faults_of_controllers = matrix_for(PLACED, every=SHARE)
# By a clock that jumps ahead the time of the job, or for a target, may be over: that is what deadlines are.
test_a_guest_that_a_job_moves_survives_the_faults_of_controllers = matrix_for(MOVED_ALIVE, every=SHARE, but=(ClockJumpsAhead,))
test_a_pod_that_is_moved_survives_the_faults_of_nodes = matrix_for(MOVED, NODES, every=SHARE)
test_a_pod_that_returns_under_its_name_survives_the_faults_of_nodes = matrix_for(RETURNED, NODES, every=SHARE)
test_a_pod_that_is_evicted_directly_survives_the_faults_of_nodes = matrix_for(EVICTED, NODES, every=SHARE)
test_a_replacement_that_comes_first_survives_the_faults_of_nodes = matrix_for(SURGED, NODES, every=SHARE)
test_a_pod_that_goes_to_given_room_survives_the_faults_of_nodes = matrix_for(GIVEN, NODES, every=SHARE)
test_pods_that_are_deleted_within_a_budget_survive_the_faults_of_nodes = matrix_for(DELETED, NODES, every=SHARE)
test_a_pod_that_has_no_node_yet_survives_the_faults_of_nodes = matrix_for(PLACED, NODES, every=SHARE)
# With its node a guest is gone, and with the other one what was to become of it: then there is another end.
test_a_guest_that_a_job_moves_survives_the_faults_of_nodes = matrix_for(
    MOVED_ALIVE, NODES, every=SHARE, but=(ClockJumpsAhead, CrashBefore, CrashAfter)
)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_no_limit_and_no_budget_is_exceeded_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.evicted > 0
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
