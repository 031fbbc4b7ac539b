"""How a job ends its pod: what budgets say, how often it is asked, and with which options (seed 004)."""

from __future__ import annotations

import pytest

from tests.engines.resources import PODS, STATEFUL_SETS
from tests.jobs.stage import RESERVATIONS, Stage, node_of
from tests.machines.herd import PATIENCE

DELETED = {"koordinator.sh/evict-policy": "Delete"}


@pytest.mark.parametrize("policy", ["Eviction", "Delete"])
async def test_a_budget_is_waited_for_also_by_who_deletes(stage: Stage, policy: str) -> None:
    """Deleting asks nobody: so the job asks by an eviction that is only tried."""
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3", metadata={"labels": {"koordinator.sh/evict-policy": policy}})
    await stage.budget(maxUnavailable=0)
    for mode in ("EvictDirectly", "ReservationFirst"):
        job = await stage.file(web, ttl="1h", mode=mode)
        await _held_by_budget(stage, job)
        await stage.is_untouched(web)
        if mode == "EvictDirectly":
            await stage.abort(job)
            await stage.ends(job, "Aborted", "Aborted")
    await stage.allow()
    await stage.ends(job, "Succeed")
    (moved,) = await stage.ready(1)
    assert node_of(moved) != node_of(web)


async def _held_by_budget(stage: Stage, job: str) -> None:
    """Before it begins, or right before it evicts."""

    async def look() -> bool:
        status = (await stage.job(job)).get("status", {})
        assert status.get("reason") == "WaitingForDisruptionBudget", status
        assert "web" in status["message"], status
        return True

    await stage.herd.eventually(look)


async def test_a_budget_that_comes_when_room_is_found_holds_the_eviction_until_it_allows_it(stage: Stage) -> None:
    """Between the room and the eviction everything is looked at again."""
    _, job, _ = await stage.about_to_evict()
    held = await stage.job(job)
    await stage.allow()
    done = await stage.ends(job, "Succeed")
    assert done["status"]["startTime"] == held["status"]["startTime"]


async def test_two_budgets_on_one_pod_never_let_it_go(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3")
    await stage.budget("one", maxUnavailable=1)
    await stage.budget("two", maxUnavailable=1)
    job = await stage.file(web, ttl="1h")
    await stage.ends(job, "Failed", "FailedEvict", says="more than one PodDisruptionBudget")
    await stage.is_untouched(web)
    await stage.no_reservation_of(job)


async def test_the_pod_of_a_stateful_set_returns_under_its_name_elsewhere(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (db,) = await stage.deploy(1, "3", name="db", of=STATEFUL_SETS)
    job = await stage.file(db)
    done = await stage.ends(job, "Succeed")
    (returned,) = await stage.ready(1, "db")
    assert returned["metadata"]["name"] == db["metadata"]["name"] == "db-0"
    assert done["status"]["podUID"] == db["metadata"]["uid"]
    assert done["status"]["podRef"]["uid"] == returned["metadata"]["uid"]
    assert node_of(returned) != node_of(db)


async def test_a_pod_that_came_back_under_its_name_is_not_the_one_that_was_meant(stage: Stage) -> None:
    """It went by itself while the job waited for room."""
    await stage.nodes(4)
    (db,) = await stage.deploy(1, "3", name="db", of=STATEFUL_SETS)
    job = await stage.file(db, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    await stage.herd.delete("db-0", PODS)
    await stage.ends(job, "Failed", "MissingPod")
    await stage.no_reservation_of(job)
    (returned,) = await stage.ready(1, "db")
    assert returned["metadata"]["uid"] != db["metadata"]["uid"]


async def test_the_room_stays_until_the_old_pod_is_gone_and_then_none_is_due_any_more(stage: Stage) -> None:
    """A set that is scaled down while its pod still ends makes no other one."""
    await stage.nodes(4, 4)
    (db,) = await stage.deploy(1, "3", name="db", of=STATEFUL_SETS)
    await stage.hold(db)
    job = await stage.file(db, ttl="1h")
    await stage.has_condition(job, "Eviction", "False", "Evicting", says="has not ended yet")
    room = await stage.reservation_of(job)
    assert room is not None
    await stage.scale(0, "db", STATEFUL_SETS)
    await stage.abort(job)
    aborted = await stage.ends(job, "Aborted", "Aborted")
    assert "on its way already" in aborted["status"]["message"]
    assert (await stage.api.get(RESERVATIONS, room["metadata"]["name"])).code == 200, "who was evicted must find it"
    await stage.let_go("db-0")
    await stage.herd.gone(PODS, "db-0")


async def test_a_job_outlives_a_pod_that_takes_longer_to_end_than_it_has_time(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3")
    await stage.hold(web)
    job = await stage.file(web, ttl="3s")
    failed = await stage.ends(job, "Failed", "Timeout")
    assert "has not ended yet" in failed["status"]["message"]
    # Its replacement has found the room all the same.
    replacement = await stage.replacement_of(web)
    assert node_of(replacement) != node_of(web)
    await stage.let_go(web["metadata"]["name"])


async def test_delete_options_go_with_the_eviction(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3", metadata={"labels": DELETED}, terminationGracePeriodSeconds=7)
    await stage.hold(web)
    graces: list[int] = []
    async with stage.api.watch(PODS, stage.namespace, fieldSelector=f"metadata.name={web['metadata']['name']}") as watch:
        job = await stage.file(web, deleteOptions={"gracePeriodSeconds": 3})
        while not graces:
            metadata = (await watch.next(PATIENCE)).object["metadata"]
            graces += [metadata["deletionGracePeriodSeconds"]] if "deletionTimestamp" in metadata else []
    assert graces == [3]
    await stage.let_go(web["metadata"]["name"])
    await stage.ends(job, "Succeed")
