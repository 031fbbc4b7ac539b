"""ReplicaSets, Deployments and StatefulSets at the mercy of every fault at every write."""

from tests.simulation.matrix import matrix_for
from tests.simulation.workloads.scenario import ADOPTED, RECREATED, ROLLED, SCALED, STATEFUL, STATEFUL_ADOPTED, STATEFUL_CLAIMS

# Every fault at every write takes too long for every day: with another seed it is at others.
test_a_set_that_is_scaled_survives_the_faults_of_controllers = matrix_for(SCALED, every=5)
test_a_pod_that_is_taken_in_survives_the_faults_of_controllers = matrix_for(ADOPTED, every=5)
test_a_rollout_survives_the_faults_of_controllers = matrix_for(ROLLED, every=14)
test_a_rollout_from_nothing_survives_the_faults_of_controllers = matrix_for(RECREATED, every=14)
test_pods_with_lasting_names_survive_the_faults_of_controllers = matrix_for(STATEFUL, every=14)
test_a_pod_that_is_taken_in_by_its_name_survives_the_faults_of_controllers = matrix_for(STATEFUL_ADOPTED, every=7)
test_pods_with_claims_survive_the_faults_of_controllers = matrix_for(STATEFUL_CLAIMS, every=14)
