"""What a person sees of a machine: words, conditions, events, and what its pod was told."""

from collections.abc import Callable

import pytest

from herder.api import labels
from tests.engines.resources import CONFIG_MAPS, PODS, PRIORITY_CLASSES
from tests.machines.herd import DATA_VOLUMES, INSTANCES, MACHINES, Herd, Json, condition, machine

BLANK: Json = {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}


async def test_a_running_machine_says_all_that_there_is_to_say(herd: Herd) -> None:
    made = await herd.make()
    instance = await herd.running()
    shown = await herd.shows("Running", nodeName=instance["status"]["nodeName"], created=True, ready=True, runStrategy="Always")
    assert shown["status"]["observedGeneration"] == made["metadata"]["generation"]
    assert shown["status"]["lastInstanceUID"] == instance["metadata"]["uid"]
    assert condition(shown, "Ready")["reason"] == "GuestRunning"
    assert condition(shown, "LiveMigratable")["status"] == "True"
    status = instance["status"]
    phases = [one["phase"] for one in status["phaseTransitionTimestamps"]]
    assert phases[-1] == "Running"
    assert set(phases) <= {"Pending", "Scheduling", "Scheduled", "Running"}
    assert (status["runtime"], status["machineType"], status["accelerator"]) == ("simulated", "simulated-q35", "none")
    assert status["memory"] == {"guestAtBoot": str(64 * 2**20), "guestCurrent": str(64 * 2**20)}
    assert status["cpu"]["model"] == "Skylake-Client-IBRS"
    assert list(status["activePods"].values()) == [status["nodeName"]]
    current = await herd.instance()
    assert current is not None
    assert current["metadata"]["labels"][labels.NODE_NAME] == status["nodeName"]
    assert current["metadata"]["labels"][labels.MACHINE_NAME] == "vm"
    assert await herd.told("VirtualMachine", "SuccessfulCreate")
    assert status["nodeName"] in await herd.told("VirtualMachineInstance", "Started")
    assert status["nodeName"] in await herd.told("Pod", "Scheduled", status["launcherPodName"])


async def test_a_pod_of_a_guest_looks_like_any_other_that_runs(herd: Herd) -> None:
    await herd.make()
    instance = await herd.running()
    pod = (await herd.api.get(PODS, instance["status"]["launcherPodName"], herd.namespace)).ok
    assert pod["status"]["phase"] == "Running"
    assert {one["type"]: one["status"] for one in pod["status"]["conditions"] if one["type"] in ("Ready", "PodScheduled")} == {
        "Ready": "True",
        "PodScheduled": "True",
    }
    (container,) = pod["status"]["containerStatuses"]
    assert (container["name"], container["ready"], container["restartCount"]) == ("compute", True, 0)
    assert "running" in container["state"]


async def test_rules_about_places_reach_the_pod(herd: Herd, unique: Callable[..., str]) -> None:
    important = unique("important")
    (await herd.api.create(PRIORITY_CLASSES, {"metadata": {"name": important}, "value": 1000})).ok  # noqa: B018
    term = {"matchExpressions": [{"key": labels.RUNTIME, "operator": "In", "values": ["simulated"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    toleration = {"key": "example.com/odd", "operator": "Exists", "effect": "NoSchedule"}
    await herd.make(
        nodeSelector={"kubernetes.io/os": "linux"},
        affinity=affinity,
        tolerations=[toleration],
        priorityClassName=important,
        terminationGracePeriodSeconds=5,
        domain={"memory": {"guest": "64Mi"}, "cpu": {"cores": 2, "model": "Haswell"}},
    )
    instance = await herd.running()
    spec = (await herd.api.get(PODS, instance["status"]["launcherPodName"], herd.namespace)).ok["spec"]
    assert spec["nodeSelector"].items() >= {"kubernetes.io/os": "linux", labels.CPU_MODEL + "Haswell": "true"}.items()
    assert spec["affinity"] == affinity
    assert toleration in spec["tolerations"]
    assert (spec["priorityClassName"], spec["priority"]) == (important, 1000)
    assert spec["terminationGracePeriodSeconds"] == 5 + 15
    assert spec["schedulerName"] == "herder-scheduler"
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert instance["status"]["cpu"]["model"] == "Haswell"


async def test_another_scheduler_can_be_named(herd: Herd) -> None:
    await herd.make(schedulerName="somebody-else")
    await herd.phase("Scheduling")
    (pod,) = await herd.pods()
    assert pod["spec"]["schedulerName"] == "somebody-else"
    assert "nodeName" not in pod["spec"]
    await herd.shows("Starting")


async def test_a_machine_that_fits_nowhere_says_why(herd: Herd) -> None:
    await herd.make(nodeSelector={"example.com/no-such": "yes"})
    machine = await herd.shows("ErrorUnschedulable", reason="Unschedulable", ready=False)
    assert "nodes are available" in machine["status"]["message"]
    assert "didn't match Pod's node affinity/selector" in machine["status"]["message"]
    assert condition(machine, "Failure")["status"] == "True"
    (pod,) = await herd.pods()
    assert "nodes are available" in await herd.told("Pod", "FailedScheduling", pod["metadata"]["name"])


async def test_deleting_a_machine_removes_what_it_owns_and_nothing_else(herd: Herd) -> None:
    written = machine("Halted", volumes={"own": BLANK})
    written["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "own"}}]
    (await herd.api.create(MACHINES, written, herd.namespace)).ok  # noqa: B018
    await herd.eventually(lambda: herd.find(DATA_VOLUMES, "own"))
    for name in ("other", "kept"):
        await herd.make(name=name)
        await herd.running(name)
    (await herd.api.create(CONFIG_MAPS, {"metadata": {"name": "mine"}}, herd.namespace)).ok  # noqa: B018
    await herd.delete("vm")
    await herd.delete("other")
    for resource, name in ((MACHINES, "vm"), (MACHINES, "other"), (INSTANCES, "other"), (DATA_VOLUMES, "own")):
        await herd.gone(resource, name)

    async def one_left() -> bool:
        (pod,) = await herd.pods()
        return pod["metadata"]["labels"][labels.MACHINE_NAME] == "kept"

    await herd.eventually(one_left)
    await herd.running("kept")
    assert await herd.find(CONFIG_MAPS, "mine") is not None


async def test_a_deleted_machine_is_shown_as_terminating_until_its_guest_has_ended(herd: Herd) -> None:
    await herd.make(simulated={"ignores-power-button": "true"}, terminationGracePeriodSeconds=2)
    await herd.running()
    await herd.delete("vm", options={"propagationPolicy": "Foreground"})
    await herd.shows("Terminating")
    await herd.gone(MACHINES, "vm")
    await herd.gone(INSTANCES, "vm")
    await herd.no_pods()


async def test_an_instance_of_someone_else_is_in_the_way_and_left_alone(herd: Herd) -> None:
    own: Json = {"metadata": {"name": "vm"}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}
    theirs = (await herd.api.create(INSTANCES, own, herd.namespace)).ok
    await herd.phase("Running")
    await herd.make()
    await herd.shows("Stopped", reason="InstanceNotOwned", created=False)
    still = await herd.phase("Running")
    assert still["metadata"]["uid"] == theirs["metadata"]["uid"]
    await herd.delete("vm", INSTANCES)
    await herd.running(but=theirs["metadata"]["uid"])


async def test_a_data_volume_of_someone_else_is_in_the_way_and_left_alone(herd: Herd) -> None:
    theirs = (await herd.api.create(DATA_VOLUMES, {"metadata": {"name": "disk"}, "spec": BLANK}, herd.namespace)).ok
    written = machine(volumes={"disk": BLANK})
    written["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "disk"}}]
    (await herd.api.create(MACHINES, written, herd.namespace)).ok  # noqa: B018
    shown = await herd.shows("DataVolumeError", reason="VolumeNotOwned", created=False)
    assert "DataVolume disk exists and belongs to someone else" in shown["status"]["message"]
    await herd.delete("vm")
    await herd.gone(MACHINES, "vm")
    found = await herd.find(DATA_VOLUMES, "disk")
    assert found is not None
    assert found["metadata"]["uid"] == theirs["metadata"]["uid"]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_an_instance_without_a_machine_runs_and_goes(herd: Herd, policy: str) -> None:
    own: Json = {"metadata": {"name": "alone"}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}
    (await herd.api.create(INSTANCES, own, herd.namespace)).ok  # noqa: B018
    await herd.phase("Running", "alone")
    await herd.delete("alone", INSTANCES, {"propagationPolicy": policy})
    await herd.gone(INSTANCES, "alone")
    await herd.no_pods()
