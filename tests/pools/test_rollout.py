"""How a changed template reaches the machines of a pool."""

import pytest

from herder.api import labels
from tests.engines.resources import EVENTS
from tests.machines.herd import INSTANCES, Json, condition
from tests.pools.pool import FIRST, Pool, memory, size_of, template, uid

OLDEST: Json = {"selectionPolicy": {"basePolicy": "Oldest"}}
# Only what never works is given little time.
IMPATIENT = {"progressDeadlineSeconds": 2}


async def test_a_rollout_never_misses_more_than_it_may(pool: Pool) -> None:
    """Watched from outside while it rolls: of five at least three are ready at each moment."""
    await pool.make(5, maxUnavailable=2)
    await pool.settled(5)
    before = await pool.uids()
    async with pool.watched() as ready:
        await pool.roll(memory("65Mi"))
        await pool.settled(5)
    assert min(ready) >= 3
    after = await pool.instances()
    assert all(uid(after[number]) != before[number] for number in before)
    revision = (await pool.get())["status"]["currentRevision"]
    assert {size_of(one) for one in after.values()} == {"65Mi"}
    assert {one["metadata"]["labels"][labels.POOL_REVISION] for one in after.values()} == {revision}


@pytest.mark.parametrize("strategy", ["unmanaged", "opportunistic"])
async def test_strategies_that_stop_nothing(pool: Pool, strategy: str) -> None:
    await pool.make(2, template("Manual"), updateStrategy={strategy: {}})
    await pool.shows(replicas=2)
    await pool.annotate(1, {labels.START_REQUEST: "1"})
    before = uid(await pool.herd.running("web-1"))
    await pool.roll(memory("65Mi"))
    written = "65Mi" if strategy == "opportunistic" else "64Mi"
    updated = 1 if strategy == "opportunistic" else 0
    await pool.shows(updatedReplicas=updated, readyReplicas=1)
    for number in (1, 2):
        assert size_of(await pool.herd.machine(pool.vm(number))) == written
    running = await pool.herd.running("web-1")
    assert (uid(running), size_of(running)) == (before, "64Mi")
    # It takes effect at the next start.
    await pool.annotate(1, {labels.RESTART_REQUEST: before})
    assert size_of(await pool.herd.running("web-1", but=before)) == written
    await pool.shows(updatedReplicas=2 if strategy == "opportunistic" else 0)
    # New ones have the template as it is.
    await pool.change(replicas=3)
    await pool.has(1, 2, 3)
    assert size_of(await pool.herd.machine("web-3")) == "65Mi"


async def test_a_bad_template_halts_by_itself_and_a_revert_or_a_fix_resumes(pool: Pool) -> None:
    await pool.make(3, template(), updateStrategy={"proactive": OLDEST}, maxUnavailable=1)
    good = (await pool.settled(3))["status"]["currentRevision"]
    before = await pool.uids()
    await pool.roll(memory("65Mi", fails_at="boot"), **IMPATIENT)
    said = await pool.says("Progressing", status="False", reason="ProgressDeadlineExceeded")
    bad = (await pool.get())["status"]["updateRevision"]
    assert "web-1" in said["message"]
    assert bad in said["message"]
    shown = (await pool.get())["status"]
    assert (shown["currentRevision"], shown["failedRevision"], shown["readyReplicas"]) == (good, bad, 2)
    assert "web-1" in await pool.herd.told("VirtualMachinePool", "ProgressDeadlineExceeded", "web")
    told = [one for one in (await pool.api.list(EVENTS, pool.namespace)).items if one["reason"] == "ProgressDeadlineExceeded"]
    assert sum(one.get("count") or 1 for one in told) == 1
    # New machines and those made again get the last good one meanwhile.
    await pool.change(replicas=4)
    await pool.shows(replicas=4, readyReplicas=3)
    assert size_of(await pool.herd.machine("web-4")) == "64Mi"
    await pool.herd.delete("web-3")

    async def again() -> bool:
        return uid(await pool.herd.running("web-3")) != before[3]

    await pool.herd.eventually(again)
    assert size_of(await pool.herd.machine("web-3")) == "64Mi"
    # Who deletes the one that is stuck does not start it all over.
    await pool.herd.delete("web-1")
    await pool.shows(replicas=4, readyReplicas=4, failedRevision=bad)
    assert size_of(await pool.herd.machine("web-1")) == "64Mi"
    # A revert is recognised as the old revision, and nobody who has it is restarted.
    now = await pool.uids()
    await pool.roll(memory("64Mi", fails_at=None))
    await pool.settled(4, currentRevision=good)
    after = await pool.uids()
    assert after == now
    assert set(await pool.revisions()) == {good, bad}
    # So is a fix.
    await pool.roll(memory("65Mi", fails_at="boot"))
    await pool.says("Progressing", status="False", reason="ProgressDeadlineExceeded")
    await pool.roll(memory("66Mi", fails_at=None), progressDeadlineSeconds=600)
    await pool.settled(4)
    assert {size_of(one) for one in (await pool.instances()).values()} == {"66Mi"}


async def test_a_machine_that_waits_to_be_tried_again_is_started_at_once_with_a_mended_template(pool: Pool) -> None:
    await pool.make(1)
    await pool.settled(1)
    await pool.roll(memory("65Mi", fails_at="boot"))
    await pool.herd.shows("CrashLoopBackOff", "web-1")
    await pool.roll(memory("66Mi", fails_at=None))
    mended = (await pool.settled(1))["status"]["currentRevision"]
    machine = await pool.herd.machine("web-1")
    assert machine["metadata"]["annotations"][labels.START_REQUEST].startswith(mended)
    assert machine["status"]["observedStartRequest"] == machine["metadata"]["annotations"][labels.START_REQUEST]


async def test_a_failed_rollout_goes_back_by_itself_where_it_is_asked_to(pool: Pool) -> None:
    await pool.make(2, updateStrategy={"proactive": {**OLDEST, "onFailure": "Rollback"}})
    good = (await pool.settled(2))["status"]["currentRevision"]
    await pool.roll(memory("65Mi", fails_at="boot"), **IMPATIENT)
    await pool.says("Progressing", status="False", reason="RolledBack")
    bad = (await pool.get())["status"]["failedRevision"]
    await pool.shows(currentRevision=good, readyReplicas=2, updatedReplicas=0, failedRevision=bad)
    assert {size_of(one) for one in (await pool.instances()).values()} == {"64Mi"}
    await pool.roll(memory("66Mi", fails_at=None), progressDeadlineSeconds=600)
    await pool.settled(2)


async def test_all_machines_at_once_may_be_missed_and_a_bad_template_is_still_noticed(pool: Pool) -> None:
    """Nobody is left who has not got it: it is said, and goes back, all the same."""
    await pool.make(2, maxUnavailable="100%")
    good = (await pool.settled(2))["status"]["currentRevision"]
    await pool.roll(memory("65Mi", fails_at="boot"), **IMPATIENT)
    await pool.says("Progressing", status="False", reason="ProgressDeadlineExceeded")
    await pool.change(updateStrategy={"proactive": {"onFailure": "Rollback"}})
    await pool.shows(currentRevision=good, readyReplicas=2)
    await pool.says("Progressing", status="False", reason="RolledBack")


async def test_limit_and_pause_hold_a_rollout_and_scaling_goes_on(pool: Pool) -> None:
    important = [{"labelSelector": {"matchLabels": {"important": "no"}}}]
    order = {"selectionPolicy": {"orderedPolicies": important, "basePolicy": "Oldest"}}
    await pool.make(4, updateStrategy={"proactive": {**order, "limit": 1}}, maxUnavailable=2)
    await pool.settled(4)
    await pool.mark(3, {"important": "no"})
    await pool.roll(memory("65Mi"))
    await pool.shows(updatedReplicas=1, readyReplicas=4)
    assert size_of((await pool.instances())[3]) == "65Mi"
    await pool.says("Progressing", status="True", reason="RolloutLimited")
    # Meanwhile the fifth gets the last good one.
    await pool.change(replicas=5)
    await pool.shows(updatedReplicas=1, readyReplicas=5)
    await pool.change(updateStrategy={"proactive": {"limit": "50%"}})
    await pool.shows(updatedReplicas=2, readyReplicas=5)
    await pool.change(updateStrategy={"proactive": {"limit": None, "paused": True}})
    await pool.says("Progressing", status="False", reason="RolloutPaused")
    await pool.change(replicas=6)
    await pool.shows(updatedReplicas=2, readyReplicas=6)
    await pool.change(updateStrategy={"proactive": {"paused": False}})
    await pool.settled(6)


async def test_a_limit_holds_also_where_machines_are_made_and_updated_at_once(pool: Pool) -> None:
    await pool.make(2, updateStrategy={"proactive": OLDEST}, maxUnavailable=4)
    await pool.settled(2)
    spec = {"replicas": 4, "updateStrategy": {"proactive": {"limit": 1}}, "template": memory("65Mi")}
    await pool.change(**spec)
    await pool.shows(replicas=4, readyReplicas=4, updatedReplicas=1)
    assert sorted(size_of(one) for one in (await pool.instances()).values()) == ["64Mi", "64Mi", "64Mi", "65Mi"]


async def test_a_paused_pool_does_nothing_and_says_so(pool: Pool) -> None:
    await pool.make(1)
    await pool.settled(1)
    before = await pool.uids()
    await pool.change(paused=True, replicas=2, template=memory("65Mi"))
    await pool.says("Paused", status="True")
    await pool.shows(replicas=1, updatedReplicas=0)
    assert await pool.uids() == before
    await pool.change(paused=False)
    await pool.settled(2)


async def test_restarted_at_restarts_everybody_a_few_at_a_time(pool: Pool) -> None:
    await pool.make(2)
    await pool.settled(2)
    before = await pool.uids()
    await pool.roll({"spec": {"template": {"metadata": {"annotations": {labels.RESTARTED_AT: "2026-01-01T00:00:00Z"}}}}})
    await pool.settled(2)
    assert not set((await pool.uids()).values()) & set(before.values())


async def test_old_revisions_go_but_for_the_last_few(pool: Pool) -> None:
    await pool.make(1, template("Halted"), revisionHistoryLimit=2)
    names: list[str] = []
    for size in ("64Mi", "65Mi", "66Mi", "67Mi"):
        await pool.roll(memory(size))
        names.append((await pool.settled(1, readyReplicas=0))["status"]["currentRevision"])

    async def kept() -> bool:
        assert await pool.revisions() == names[1:]
        return True

    await pool.herd.eventually(kept)
    # Back to one of them: it is the newest again, and no new one.
    await pool.roll(memory("65Mi"))
    await pool.settled(1, readyReplicas=0, currentRevision=names[1])
    assert await pool.revisions() == [names[2], names[3], names[1]]


async def test_min_ready_seconds_is_waited_for(pool: Pool) -> None:
    await pool.make(2, minReadySeconds=2)
    await pool.shows(readyReplicas=2, availableReplicas=0)
    await pool.settled(2, availableReplicas=2)
    await pool.roll(memory("65Mi"))
    shown = (await pool.until(lambda status: status.get("readyReplicas") == 2 and status.get("updatedReplicas") == 1))["status"]
    assert shown["availableReplicas"] == 1
    await pool.settled(2, availableReplicas=2)


async def test_running_by_hand_and_run_strategy_in_the_new_template(pool: Pool) -> None:
    """A machine that somebody started or stopped is not undone by a rollout; only the template's own change is obeyed."""
    made_of = template()
    del made_of["spec"]["runStrategy"]
    made_of["spec"]["running"] = True
    await pool.make(3, made_of, maxUnavailable=3)
    await pool.settled(3)
    await pool.herd.patch("web-1", {"spec": {"running": False}})
    await pool.herd.patch("web-2", {"spec": {"running": None, "runStrategy": "Manual"}})
    await pool.shows(readyReplicas=2)
    await pool.roll(memory("65Mi"))
    await pool.shows(readyReplicas=2, updatedReplicas=3)
    machines = await pool.machines()
    assert machines["web-1"]["spec"]["running"] is False
    assert machines["web-2"]["spec"]["runStrategy"] == "Manual"
    assert {size_of(one) for one in machines.values()} == {"65Mi"}
    # Now the template says it another way: always.
    await pool.roll({"spec": {"running": None, "runStrategy": "RerunOnFailure"}})
    await pool.settled(3)
    assert {one["spec"]["runStrategy"] for one in (await pool.machines()).values()} == {"RerunOnFailure"}
    # Off takes ready machines down, and is rolled like a restart.
    await pool.roll({"spec": {"runStrategy": "Halted"}})
    await pool.settled(3, readyReplicas=0, unavailableReplicas=0)


async def test_a_to_b_to_a_within_a_second_nobody_restarts(pool: Pool) -> None:
    await pool.make(2)
    good = (await pool.settled(2))["status"]["currentRevision"]
    before = await pool.uids()
    await pool.roll(memory("65Mi"))
    await pool.roll(memory("64Mi"))
    await pool.settled(2, currentRevision=good)
    await pool.roll(memory("64Mi", ready_after="0s"))
    await pool.settled(2)
    assert await pool.uids() == before


async def test_rollback_in_mid_rollout_three_revisions_live(pool: Pool) -> None:
    await pool.make(3, updateStrategy={"proactive": {**OLDEST, "limit": 1}})
    await pool.settled(3)
    before = await pool.uids()
    await pool.roll(memory("65Mi"))
    await pool.shows(updatedReplicas=1, readyReplicas=3)
    await pool.change(updateStrategy={"proactive": {"limit": 1}}, template=memory("66Mi"))
    await pool.shows(updatedReplicas=1, readyReplicas=3)
    await pool.roll(memory("64Mi"))
    await pool.change(updateStrategy={"proactive": {"limit": None}})
    await pool.settled(3)
    assert {size_of(one) for one in (await pool.instances()).values()} == {"64Mi"}
    assert (await pool.uids())[3] == before[3]


@pytest.mark.parametrize("replicas", [0, 1])
async def test_replicas_0_and_1_lowered_mid_rollout(pool: Pool, replicas: int) -> None:
    await pool.make(replicas)
    await pool.settled(replicas)
    await pool.roll(memory("65Mi"))
    await pool.change(replicas=0)
    await pool.settled(0)


async def test_25_percent_of_3_lowered_mid_rollout(pool: Pool) -> None:
    """25 % of three is less than one, and one goes at a time all the same: of three, and of the two that stay."""
    await pool.make(3, updateStrategy={"proactive": OLDEST}, minReadySeconds=1)
    await pool.settled(3)
    before = await pool.uids()
    await pool.annotate(3, FIRST)
    async with pool.watched() as ready:
        await pool.roll(memory("65Mi"))
        await pool.herd.running("web-1", but=before[1])
    assert min(ready) >= 2
    async with pool.watched(but=3) as staying:
        await pool.change(replicas=2)
        await pool.settled(2)
    await pool.has(1, 2)
    assert min(staying) >= 1
    assert {size_of(one) for one in (await pool.instances()).values()} == {"65Mi"}


async def test_vm_paused_by_a_person_is_left_so(pool: Pool) -> None:
    await pool.make(2)
    await pool.settled(2)
    before = await pool.uids()
    await pool.herd.annotate("web-1", labels.PAUSE, "true", INSTANCES)

    async def paused() -> bool:
        return condition((await pool.instances())[1], "Paused").get("status") == "True"

    await pool.herd.eventually(paused)
    await pool.change(maxUnavailable=2, template=memory("65Mi"))
    await pool.shows(updatedReplicas=1)
    assert "web-1" in (await pool.says("Progressing", status="True"))["message"]
    assert (await pool.uids())[1] == before[1]
    await pool.herd.annotate("web-1", labels.PAUSE, "false", INSTANCES)
    await pool.settled(2)
