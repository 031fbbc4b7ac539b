"""Machines that a pool takes away with their memory, and that go on from it when they come back (statePreservation: Online)."""

from __future__ import annotations

import msgspec
import pytest

from herder.api import labels
from tests.engines.resources import CLAIMS, NODES
from tests.machines.herd import MACHINES, Json, condition
from tests.machines.volumes import BLANK
from tests.pools.pool import FIRST, POOLS, Pool, memory, template, uid
from tests.pools.test_preservation import claim_of, preserved, released

ONLINE = {"proactive": {"statePreservation": "Online"}}
SLOW = {"save-bandwidth": "8Mi"}


def memory_claim(number: int) -> str:
    return f"web-{number}-memory"


async def record(pool: Pool, number: int) -> Json:
    claim = (await pool.api.get(CLAIMS, memory_claim(number), pool.namespace)).ok
    return msgspec.json.decode(claim["metadata"]["annotations"][labels.MEMORY])


async def kept(pool: Pool, number: int) -> Json:
    """The claim with its memory, once its machine is gone and the pool alone owns it."""

    async def look() -> Json:
        claim = (await pool.api.get(CLAIMS, memory_claim(number), pool.namespace)).ok
        owners = [(one["kind"], one.get("controller", False)) for one in claim["metadata"].get("ownerReferences", ())]
        assert owners == [("VirtualMachinePool", False)], owners
        return claim

    await pool.herd.gone(MACHINES, pool.vm(number))
    return await pool.herd.eventually(look)


async def is_resumed(pool: Pool, number: int) -> Json:
    """Its machine, once its guest runs again from its memory, and nothing is left of that."""

    async def look() -> Json:
        assert (await record(pool, number))["state"] == "Used"
        return (await pool.instances())[number]

    instance = await pool.herd.eventually(look)
    assert instance["metadata"]["annotations"][labels.RESUME_FROM]
    return instance


async def take(pool: Pool, number: int, left: int) -> None:
    await pool.annotate(number, FIRST)
    await pool.change(replicas=left)


async def test_a_machine_comes_back_with_its_memory_and_its_disk(pool: Pool) -> None:
    await pool.make(2, template(disk=BLANK), scaleInStrategy=ONLINE)
    await pool.settled(2)
    disk, first = await claim_of(pool, 1), (await pool.uids())[1]
    await take(pool, 1, 1)
    claim = await kept(pool, 1)
    await preserved(pool, 1)
    saved = await record(pool, 1)
    assert (saved["state"], saved["instance"]) == ("Saved", first)
    await pool.shows(replicas=1, preservedStates=1, surplusReplicas=0)
    await pool.change(replicas=2)
    await pool.settled(2, preservedStates=0)
    instance = await is_resumed(pool, 1)
    assert instance["metadata"]["annotations"][labels.RESUME_FROM] == uid(claim)
    assert (await record(pool, 1))["machine"] == uid(await pool.herd.machine("web-1"))
    await released(pool, 1)
    assert await claim_of(pool, 1) == disk
    # Once more, with the same claim for its memory.
    await take(pool, 1, 1)
    await kept(pool, 1)
    await pool.change(replicas=2)
    await pool.settled(2, preservedStates=0)
    await is_resumed(pool, 1)


async def test_a_machine_that_does_not_run_is_taken_as_offline(pool: Pool) -> None:
    await pool.make(2, template("Halted", disk=BLANK), scaleInStrategy=ONLINE)
    await pool.settled(2, readyReplicas=0)
    await claim_of(pool, 1)
    await take(pool, 1, 1)
    await preserved(pool, 1)
    assert await pool.herd.find(CLAIMS, memory_claim(1)) is None


async def test_opportunistic_takes_suspended_machines_with_their_memory_and_nobody_else(pool: Pool) -> None:
    await pool.make(2, scaleInStrategy={"opportunistic": {"statePreservation": "Online"}})
    await pool.settled(2)
    await pool.change(replicas=1)
    await pool.shows(replicas=2, surplusReplicas=1)
    await pool.herd.patch("web-2", {"spec": {"suspended": True}})
    await kept(pool, 2)
    await pool.shows(replicas=1, surplusReplicas=0, preservedStates=1)
    await pool.change(replicas=2)
    await pool.settled(2, preservedStates=0)
    await is_resumed(pool, 2)


async def test_called_off_while_its_memory_is_saved_it_goes_on(pool: Pool) -> None:
    await pool.make(2, template(simulated=SLOW), scaleInStrategy=ONLINE)
    await pool.settled(2)
    before = await pool.uids()
    await take(pool, 1, 1)

    async def is_saved() -> bool:
        machine = await pool.herd.machine("web-1")
        return bool(machine["spec"].get("suspended")) and condition(machine, "Suspended").get("reason") == "SavingMemory"

    await pool.herd.eventually(is_saved)
    await pool.change(replicas=2)

    async def called_off() -> bool:
        machine = await pool.herd.machine("web-1")
        return "suspended" not in machine["spec"] and labels.SUSPENDED_BY not in machine["metadata"]["annotations"]

    await pool.herd.eventually(called_off)
    await pool.herd.gone(CLAIMS, memory_claim(1))
    await pool.settled(2)
    assert await pool.uids() == before


async def test_one_that_cannot_be_saved_is_not_taken_and_the_pool_says_so(pool: Pool) -> None:
    made_of = template()
    made_of["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDisk": {"capacity": "8Mi"}}]
    await pool.make(2, made_of, scaleInStrategy=ONLINE)
    await pool.settled(2)
    await pool.change(replicas=1)
    said = await pool.says("MemoryPreserved", status="False", reason="CannotSaveMemory")
    assert "scratch is an emptyDisk" in said["message"] and "web-1" in said["message"]
    await pool.shows(replicas=2, surplusReplicas=1)
    await pool.change(replicas=2)
    await pool.says_not("MemoryPreserved")


async def test_a_save_that_fails_lets_the_guest_go_on_and_is_tried_again_later(pool: Pool) -> None:
    await pool.make(2, template(simulated={"fails-at": "save"}), scaleInStrategy=ONLINE)
    await pool.settled(2)
    before = await pool.uids()
    await take(pool, 1, 1)

    async def tried() -> str:
        return (await pool.herd.machine("web-1"))["metadata"]["annotations"].get(labels.SAVE_FAILED, "")

    failed = msgspec.json.decode(await pool.herd.eventually(tried))
    assert failed["attempts"] == 1 and failed["message"]
    said = await pool.says("MemoryPreserved", status="False")
    assert "web-1" in said["message"]
    # Nobody could be saved: all run on.
    await pool.shows(replicas=2, surplusReplicas=1)
    assert await pool.uids() == before


@pytest.mark.parametrize("paused", [True, False], ids=["a rollout that waits", "a rollout that goes on"])
async def test_template_changed_while_preserved_with_memory(pool: Pool, paused: bool) -> None:
    """It goes on as what it was, and is rolled afterwards."""
    await pool.make(2, scaleInStrategy=ONLINE)
    old = (await pool.settled(2))["status"]["currentRevision"]
    await take(pool, 1, 1)
    await kept(pool, 1)
    await pool.roll(memory("65Mi"))
    new = (await pool.settled(1))["status"]["currentRevision"]
    await pool.change(replicas=2, updateStrategy={"proactive": {"paused": True}} if paused else None)
    if paused:
        instance = await is_resumed(pool, 1)
        assert instance["metadata"]["labels"][labels.POOL_REVISION] == old
        await pool.change(updateStrategy=None)
    await pool.settled(2)
    assert (await pool.instances())[1]["metadata"]["labels"][labels.POOL_REVISION] == new
    assert "goes on from the memory" in await pool.herd.told("VirtualMachine", "Resumed", "web-1")


async def test_a_spec_that_an_opportunistic_update_has_changed_is_what_the_guest_runs_again(pool: Pool) -> None:
    await pool.make(2, scaleInStrategy=ONLINE, updateStrategy={"opportunistic": {}})
    old = (await pool.settled(2))["status"]["currentRevision"]
    await pool.roll(memory("65Mi"))
    await pool.until(lambda status: status["updateRevision"] != old)
    await take(pool, 1, 1)
    await kept(pool, 1)
    await pool.change(replicas=2)
    instance = await is_resumed(pool, 1)
    assert instance["metadata"]["labels"][labels.POOL_REVISION] == old


async def test_memory_whose_claim_was_lost_is_booted_without(pool: Pool) -> None:
    await pool.make(2, scaleInStrategy=ONLINE)
    await pool.settled(2)
    await take(pool, 1, 1)
    await kept(pool, 1)
    (await pool.api.delete(CLAIMS, memory_claim(1), pool.namespace)).ok  # noqa: B018
    await pool.herd.gone(CLAIMS, memory_claim(1))
    await pool.shows(preservedStates=0)
    await pool.change(replicas=2)
    await pool.settled(2)
    assert labels.RESUME_FROM not in (await pool.instances())[1]["metadata"]["annotations"]


@pytest.mark.parametrize("policy", ["Background", "Orphan"])
async def test_memory_goes_with_its_pool_unless_it_is_orphaned(pool: Pool, policy: str) -> None:
    await pool.make(2, scaleInStrategy=ONLINE)
    await pool.settled(2)
    await take(pool, 1, 1)
    await kept(pool, 1)
    await pool.delete(policy)
    if policy == "Background":
        await pool.herd.gone(CLAIMS, memory_claim(1))
        return

    async def orphaned() -> bool:
        claim = (await pool.api.get(CLAIMS, memory_claim(1), pool.namespace)).ok
        return not claim["metadata"].get("ownerReferences")

    await pool.herd.eventually(orphaned)
    await pool.herd.gone(POOLS, pool.name)
    # A pool of the same name is another one: it does not take what the one before it kept.
    await pool.make(1)
    await pool.settled(1)
    assert (await record(pool, 1))["state"] == "Saved"


async def test_a_rollout_leaves_a_machine_alone_that_somebody_has_suspended(pool: Pool) -> None:
    await pool.make(2)
    old = (await pool.settled(2))["status"]["currentRevision"]
    await pool.herd.patch("web-1", {"spec": {"suspended": True}})
    await pool.herd.shows("Suspended", name="web-1")
    await pool.roll(memory("65Mi"))

    def told(status: Json) -> bool:
        return any("suspended, and left so: web-1" in one["message"] for one in status["conditions"])

    await pool.until(lambda status: status["updatedReplicas"] == 1 and told(status))
    await pool.herd.patch("web-1", {"spec": {"suspended": None}})
    await pool.settled(2)
    assert (await pool.instances())[1]["metadata"]["labels"][labels.POOL_REVISION] != old


async def test_restore_on_another_cpu(pool: Pool) -> None:
    """Of memory that a pool kept, too: it boots from its disks, and says why."""
    node = await pool.herd.node("tests.example.com/special")
    features = [labels.CPU_FEATURE + "tests-own", labels.HOST_MODEL_REQUIRED_FEATURES + "tests-own"]
    await pool.api.patch(NODES, node, {"metadata": {"labels": dict.fromkeys(features, "true")}}, kind="merge")
    domain = {"cpu": {"model": "host-model"}}
    await pool.make(1, template(nodeSelector={"tests.example.com/special": "yes"}, domain=domain), scaleInStrategy=ONLINE)
    await pool.settled(1)
    await pool.change(replicas=0)
    await kept(pool, 1)
    assert "tests-own" in str((await record(pool, 1))["saved"]["started"]["cpu"])
    await pool.api.patch(NODES, node, {"metadata": {"labels": dict.fromkeys(features)}}, kind="merge")
    await pool.change(replicas=1)
    await pool.settled(1)
    told = condition(await pool.herd.machine("web-1"), "Suspended")
    assert told["reason"] == "NotResumed" and "no node has the CPU" in told["message"]


async def test_memory_restored_twice_or_after_its_disk_was_used(pool: Pool) -> None:
    """What was used is used: a copy of the record, put back by somebody, resumes nobody."""
    await pool.make(1, scaleInStrategy=ONLINE)
    await pool.settled(1)
    await pool.change(replicas=0)
    saved = (await kept(pool, 1))["metadata"]["annotations"][labels.MEMORY]
    await pool.change(replicas=1)
    await pool.settled(1)
    await is_resumed(pool, 1)
    first = (await pool.uids())[1]
    own = {**msgspec.json.decode(saved), "machine": uid(await pool.herd.machine("web-1"))}
    forged = {"metadata": {"annotations": {labels.MEMORY: msgspec.json.encode(own).decode()}}}
    await pool.herd.patch(memory_claim(1), forged, CLAIMS)
    await pool.annotate(1, {labels.RESTART_REQUEST: first})
    again = await pool.herd.running("web-1", but=first)
    assert labels.RESUME_FROM not in again["metadata"]["annotations"]
