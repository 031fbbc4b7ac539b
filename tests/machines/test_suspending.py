"""Machines that are suspended and go on: their memory in a claim, used once, and nothing of any node meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from herder.api import labels
from tests.engines.resources import CLAIMS, NODES
from tests.machines.herd import INSTANCES, MACHINES, Herd, Json, condition, machine

SLOW = {"save-bandwidth": "8Mi"}


async def suspend(herd: Herd) -> None:
    await herd.patch("vm", {"spec": {"suspended": True}})


async def resume(herd: Herd) -> None:
    await herd.patch("vm", {"spec": {"suspended": None}})


async def suspended(herd: Herd) -> Json:
    await suspend(herd)
    made = await herd.shows("Suspended", created=False, ready=False)
    await herd.gone(INSTANCES, "vm")
    return made


async def record(herd: Herd) -> Json:
    claim = await herd.find(CLAIMS, "vm-memory")
    assert claim is not None
    return msgspec.json.decode(claim["metadata"]["annotations"][labels.MEMORY])


async def says(herd: Herd, reason: str) -> Json:
    """What the machine says of its suspension, once it gives this reason."""

    async def look() -> Json:
        told = condition(await herd.machine(), "Suspended")
        assert told.get("reason") == reason, told
        return told

    return await herd.eventually(look)


async def test_a_machine_is_suspended_takes_nothing_of_any_node_and_goes_on(herd: Herd) -> None:
    await herd.make()
    first = await herd.running()
    made = await suspended(herd)
    assert (await says(herd, "MemorySaved"))["status"] == "True"
    await herd.no_pods()
    saved = await record(herd)
    assert (saved["state"], saved["instance"], saved["machine"]) == ("Saved", first["metadata"]["uid"], made["metadata"]["uid"])
    assert saved["saved"]["started"]["runtime"] == "simulated"
    assert saved["saved"]["started"]["cpu"]["model"] == first["status"]["cpu"]["model"]
    await resume(herd)
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["metadata"]["annotations"][labels.RESUME_FROM]
    await herd.told("VirtualMachine", "Resumed")

    async def used() -> bool:
        return (await record(herd))["state"] == "Used"

    await herd.eventually(used)
    # The claim goes with the last pod that holds it.
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Stopped", created=False)
    await herd.gone(CLAIMS, "vm-memory")


async def test_it_is_suspended_again_and_again_in_the_same_claim(herd: Herd) -> None:
    await herd.make()
    known = ""
    for _ in range(3):
        running = await herd.running(but=known)
        known = running["metadata"]["uid"]
        await suspended(herd)
        assert (await record(herd))["instance"] == known
        await resume(herd)
    await herd.running(but=known)


@pytest.mark.parametrize("strategy", ["Manual", "Once", "RerunOnFailure"])
async def test_whoever_is_resumed_starts_however_it_was_started_before(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, annotations={labels.START_REQUEST: "1"})
    first = await herd.running()
    await suspended(herd)
    await resume(herd)
    await herd.running(but=first["metadata"]["uid"])


async def test_a_paused_guest_is_paused_again(herd: Herd) -> None:
    await herd.make()
    await herd.running()
    await herd.annotate("vm", labels.PAUSE, "true", INSTANCES)
    await herd.shows("Paused")
    await suspended(herd)
    assert (await record(herd))["saved"]["paused"] is True
    await resume(herd)
    await herd.shows("Paused", created=True)


async def test_it_is_called_off_while_memory_is_saved_and_the_guest_goes_on(herd: Herd) -> None:
    await herd.make(simulated=SLOW)
    first = await herd.running()
    await suspend(herd)
    await herd.shows("Suspending")

    async def stands_still() -> bool:
        instance = await herd.instance()
        return instance is not None and condition(instance, "Paused").get("reason") == "SavingMemory"

    await herd.eventually(stands_still)
    await resume(herd)
    assert (await herd.running())["metadata"]["uid"] == first["metadata"]["uid"]
    await herd.gone(CLAIMS, "vm-memory")
    assert [pod["metadata"]["name"] for pod in await herd.pods()] == [first["status"]["launcherPodName"]]


async def test_memory_that_cannot_be_saved_lets_the_guest_go_on_and_says_why(herd: Herd) -> None:
    await herd.make(simulated={"fails-at": "save"})
    first = await herd.running()
    await suspend(herd)
    assert "as it was told to" in (await says(herd, "SaveFailed"))["message"]
    assert (await herd.running())["metadata"]["uid"] == first["metadata"]["uid"]
    await resume(herd)
    await herd.gone(CLAIMS, "vm-memory")
    await herd.running()


async def test_a_machine_with_an_empty_disk_is_not_suspended(herd: Herd) -> None:
    made = machine()
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]
    (await herd.api.create(MACHINES, made, herd.namespace)).ok  # noqa: B018
    await herd.running()
    await suspend(herd)
    why = await says(herd, "CannotSaveMemory")
    assert (why["status"], "volume scratch is an emptyDisk" in why["message"]) == ("False", True)
    await herd.shows("Running", ready=True)


async def test_a_node_says_whether_it_can_save_and_a_guest_there_is_not_suspended_where_it_cannot(herd: Herd) -> None:
    node = await herd.node("tests.example.com/forgetful")
    assert (await herd.api.get(NODES, node)).ok["metadata"]["labels"][labels.SAVE_MEMORY] == "true"
    await herd.api.patch(NODES, node, {"metadata": {"labels": {labels.SAVE_MEMORY: "false"}}}, kind="merge")
    await herd.make(nodeSelector={"tests.example.com/forgetful": "yes"})
    await herd.running()
    await suspend(herd)
    assert f"node {node} cannot save memory" in (await says(herd, "CannotSaveMemory"))["message"]
    # Once it can, it is saved.
    await herd.api.patch(NODES, node, {"metadata": {"labels": {labels.SAVE_MEMORY: "true"}}}, kind="merge")
    await herd.annotate("vm", "example.com/touched", "1")
    await herd.shows("Suspended", created=False)


async def test_a_template_that_has_changed_meanwhile_is_said_and_booted(herd: Herd) -> None:
    await herd.make()
    first = await herd.running()
    await suspended(herd)
    await herd.patch("vm", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "96Mi"}}}}}})

    async def said() -> bool:
        return "take the change back" in condition(await herd.machine(), "Suspended")["message"]

    await herd.eventually(said)
    await resume(herd)
    second = await herd.running(but=first["metadata"]["uid"])
    assert labels.RESUME_FROM not in second["metadata"]["annotations"]
    assert "its template has changed" in await herd.told("VirtualMachine", "NotResumed")
    assert "its template has changed" in (await says(herd, "NotResumed"))["message"]
    await herd.gone(CLAIMS, "vm-memory")


async def test_a_lost_claim_is_booted_without(herd: Herd) -> None:
    await herd.make()
    first = await herd.running()
    await suspended(herd)
    await herd.delete("vm-memory", CLAIMS)
    await herd.gone(CLAIMS, "vm-memory")
    await says(herd, "NothingSaved")
    await resume(herd)
    second = await herd.running(but=first["metadata"]["uid"])
    assert labels.RESUME_FROM not in second["metadata"]["annotations"]


async def test_another_cpu_is_booted_without(herd: Herd) -> None:
    """Trap: restore on another CPU."""
    node = await herd.node("tests.example.com/special")
    features = [labels.CPU_FEATURE + "tests-own", labels.HOST_MODEL_REQUIRED_FEATURES + "tests-own"]
    await herd.api.patch(NODES, node, {"metadata": {"labels": dict.fromkeys(features, "true")}}, kind="merge")
    await herd.make(nodeSelector={"tests.example.com/special": "yes"}, domain={"cpu": {"model": "host-model"}})
    first = await herd.running()
    await suspended(herd)
    assert "tests-own" in str((await record(herd))["saved"]["started"]["cpu"])
    await herd.api.patch(NODES, node, {"metadata": {"labels": dict.fromkeys(features)}}, kind="merge")
    await resume(herd)
    await herd.running(but=first["metadata"]["uid"])
    assert "no node has the CPU that it was started with" in await herd.told("VirtualMachineInstance", "NotResumed")
    assert "no node has the CPU that it was started with" in (await says(herd, "NotResumed"))["message"]


async def test_a_suspended_machine_is_deleted_with_its_memory(herd: Herd) -> None:
    await herd.make()
    await herd.running()
    await suspended(herd)
    await herd.delete("vm")
    await herd.gone(CLAIMS, "vm-memory")


async def test_stopped_while_it_is_suspended_it_boots_when_it_is_started_next(herd: Herd) -> None:
    await herd.make()
    await herd.running()
    await suspended(herd)
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Suspended")
    await resume(herd)
    await herd.shows("Stopped", created=False)
    await herd.gone(CLAIMS, "vm-memory")
    assert "its memory is thrown away" in await herd.told("VirtualMachine", "MemoryDropped")


async def test_one_that_does_not_run_has_nothing_to_save_and_is_not_started(herd: Herd) -> None:
    made = machine("Halted")
    made["spec"]["suspended"] = True
    (await herd.api.create(MACHINES, made, herd.namespace)).ok  # noqa: B018
    await herd.shows("Suspended", created=False)
    await herd.patch("vm", {"spec": {"runStrategy": "Always"}})
    await says(herd, "NothingSaved")
    assert await herd.instance() is None
    await resume(herd)
    await herd.running()


async def test_a_claim_of_that_name_that_is_somebody_elses_is_left_alone(herd: Herd) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "none"}
    await herd.api.create(CLAIMS, {"metadata": {"name": "vm-memory"}, "spec": spec}, herd.namespace)
    await herd.make()
    await herd.running()
    await suspend(herd)
    assert "belongs to someone else" in (await says(herd, "ClaimNotOwned"))["message"]
    await herd.shows("Running", ready=True)
    assert [pod["metadata"]["labels"][labels.APP] for pod in await herd.pods()] == [labels.LAUNCHER]


async def _too_small_claim(herd: Herd, made: Json, *finalizers: str) -> Json:
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": "vm",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "herder-local"}
    metadata = {"name": "vm-memory", "ownerReferences": [owner], "finalizers": list(finalizers)}
    return (await herd.api.create(CLAIMS, {"metadata": metadata, "spec": spec}, herd.namespace)).ok


async def test_a_claim_that_somebody_made_too_small_is_made_anew(herd: Herd) -> None:
    """Nobody gets more room than a claim says."""
    made = await herd.make()
    await herd.running()
    small = await _too_small_claim(herd, made)
    await suspended(herd)
    large = await herd.find(CLAIMS, "vm-memory")
    assert large is not None and large["metadata"]["uid"] != small["metadata"]["uid"]
    assert large["spec"]["resources"]["requests"]["storage"] == "161Mi"


async def test_it_is_saved_as_soon_as_an_old_claim_that_records_nothing_is_gone(herd: Herd) -> None:
    """Nothing but the end of that claim tells: the controller waits for it, however long somebody holds it."""
    made = await herd.make()
    await herd.running()
    await _too_small_claim(herd, made, "example.com/held")
    await suspend(herd)

    async def waits() -> bool:
        return "waits until the old claim vm-memory is gone" in condition(await herd.machine(), "Suspended").get("message", "")

    await herd.eventually(waits)
    await herd.patch("vm-memory", {"metadata": {"finalizers": None}}, CLAIMS)
    await herd.shows("Suspended", created=False, ready=False)


@pytest.mark.parametrize("written", ["", "{", '{"state":"Saved","machine":"x","instance":"y","pod":"z"}', "elsewhere"])
async def test_whatever_somebody_writes_into_the_claim_it_boots_and_says_why(herd: Herd, written: str) -> None:
    await herd.make()
    first = await herd.running()
    await suspended(herd)
    known = await record(herd)
    known["saved"]["started"]["runtime"] = "no such thing/!!"
    await herd.annotate(
        "vm-memory", labels.MEMORY, written if written != "elsewhere" else msgspec.json.encode(known).decode(), CLAIMS
    )
    await resume(herd)
    second = await herd.running(but=first["metadata"]["uid"])
    if "Saved" in written or written == "elsewhere":
        assert "boots from its disks" in (await says(herd, "NotResumed"))["message"]
    # And is suspended as any other.
    await suspended(herd)
    assert (await record(herd))["instance"] == second["metadata"]["uid"]


async def test_one_that_cannot_be_saved_can_be_stopped(herd: Herd) -> None:
    await herd.make(simulated={"fails-at": "save"})
    await herd.running()
    await suspend(herd)
    await says(herd, "SaveFailed")
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Suspended", created=False)
    await herd.gone(CLAIMS, "vm-memory")
