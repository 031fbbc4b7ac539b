"""Jobs at the mercy of every fault at every write, and of days full of trouble."""

import pytest

from tests.simulation.jobs.scenario import EVICTED, GIVEN_UP, MOVED, OVERTAKEN, RETURNED
from tests.simulation.jobs.storms import faults_of, weather
from tests.simulation.matrix import matrix_for

# Every fault at every write takes too long for every day: with another seed it is at others.
test_a_pod_that_is_moved_survives_the_faults_of_controllers = matrix_for(MOVED, every=9)
test_a_pod_that_returns_under_its_name_survives_the_faults_of_controllers = matrix_for(RETURNED, every=17)
test_a_pod_that_is_evicted_directly_survives_the_faults_of_controllers = matrix_for(EVICTED, every=9)
test_jobs_that_are_given_up_survive_the_faults_of_controllers = matrix_for(GIVEN_UP, every=17)
test_jobs_that_are_overtaken_survive_the_faults_of_controllers = matrix_for(OVERTAKEN, every=17)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_no_limit_and_no_budget_is_exceeded_whatever_the_weather(number: int, seed: int) -> None:
    chosen = seed * 1000 + number
    weathered = weather(chosen)
    assert weathered.evicted > 0
    assert not weathered.wrong, f"seed {chosen}: {faults_of(chosen)}\n" + "\n".join(weathered.wrong)
