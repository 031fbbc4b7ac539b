"""Fields of machines and instances, changed in turn while controllers, scheduler and nodes look on."""

from herder.kube.resources import INSTANCES, MACHINES
from tests.machines.herd import machine
from tests.simulation.herd.scenario import KEY, STARTED_AND_RESTARTED
from tests.simulation.inputs_to import inputs_to

MACHINE = machine("Always", terminationGracePeriodSeconds=5, nodeSelector={"kubernetes.io/os": "linux"})
MACHINE["metadata"]["namespace"] = KEY.namespace
INSTANCE = {
    "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    "spec": MACHINE["spec"]["template"]["spec"],
}

test_a_machine_copes_with_every_field = inputs_to(STARTED_AND_RESTARTED, MACHINES, MACHINE, most=120)
test_an_instance_copes_with_every_field = inputs_to(STARTED_AND_RESTARTED, INSTANCES, INSTANCE, most=120)
