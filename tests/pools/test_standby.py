"""Machines that a pool keeps beside its replicas: provisioned, asleep, and the first that a scale-out takes."""

from __future__ import annotations

import pytest

from herder.api import labels
from tests.engines.resources import CLAIMS
from tests.machines.herd import Json
from tests.machines.volumes import BLANK
from tests.pools.pool import POOLS, Pool, memory, template, uid
from tests.pools.test_online import kept, record, take
from tests.pools.test_preservation import claim_of


def standby(replicas: int, state: str = "Offline") -> Json:
    return {"replicas": replicas, "state": state}


async def marked(pool: Pool) -> dict[int, str]:
    """Standbys by number, and how each sleeps."""
    found = (await pool.machines()).values()
    marks = {one["metadata"]["name"]: one["metadata"]["labels"].get(labels.STANDBY) for one in found}
    return {int(name.rpartition("-")[2]): mark for name, mark in marks.items() if mark}


@pytest.mark.parametrize("state", ["Offline", "Online"])
async def test_a_scale_out_takes_them_first_and_others_are_made_in_their_place(pool: Pool, state: str) -> None:
    await pool.make(1, template(disk=BLANK), standby=standby(2, state))
    await pool.settled(1, standbyReplicas=2, readyStandbyReplicas=2)
    assert await marked(pool) == {2: state, 3: state}
    assert list(await pool.instances()) == [1]
    before, disk = {name: uid(one) for name, one in (await pool.machines()).items()}, await claim_of(pool, 2)
    await pool.change(replicas=2)
    await pool.settled(2, standbyReplicas=2, readyStandbyReplicas=2)
    assert await marked(pool) == {3: state, 4: state}
    after = {name: uid(one) for name, one in (await pool.machines()).items()}
    assert {name: after[name] for name in before} == before
    assert await claim_of(pool, 2) == disk
    instance = (await pool.instances())[2]
    resumed = labels.RESUME_FROM in instance["metadata"]["annotations"]
    assert resumed == (state == "Online")
    # The pool's label, by which an autoscaler counts: of those that work, and of nobody else.
    pods = [one["metadata"] for one in await pool.herd.pods() if labels.POOL in one["metadata"].get("labels", {})]
    assert len(pods) == 2


async def test_a_new_revision_reaches_them_while_they_sleep(pool: Pool) -> None:
    await pool.make(1, standby=standby(1))
    await pool.settled(1, readyStandbyReplicas=1)
    await pool.roll(memory("65Mi"))
    new = (await pool.settled(1))["status"]["currentRevision"]

    async def updated() -> bool:
        return (await pool.herd.machine("web-2"))["metadata"]["labels"][labels.POOL_REVISION] == new

    await pool.herd.eventually(updated)
    assert list(await pool.instances()) == [1]


async def test_one_that_sleeps_online_is_booted_once_with_a_new_revision_and_saved_again(pool: Pool) -> None:
    await pool.make(1, standby=standby(1, "Online"))
    await pool.settled(1, readyStandbyReplicas=1)
    before = await record(pool, 2)
    await pool.roll(memory("65Mi"))
    new = (await pool.settled(1))["status"]["currentRevision"]

    async def saved_again() -> bool:
        now = await record(pool, 2)
        return now["state"] == "Saved" and now["poolRevision"] == new

    await pool.herd.eventually(saved_again)
    assert (await record(pool, 2))["instance"] != before["instance"]
    await pool.settled(1, readyStandbyReplicas=1)
    await pool.change(replicas=2)
    await pool.settled(2)
    assert labels.RESUME_FROM in (await pool.instances())[2]["metadata"]["annotations"]


async def test_fewer_are_kept_and_then_none(pool: Pool) -> None:
    await pool.make(1, standby=standby(2))
    await pool.settled(1, readyStandbyReplicas=2)
    await pool.change(standby={"replicas": 1})
    await pool.has(1, 2)
    await pool.change(standby=None)
    await pool.has(1)
    await pool.settled(1, standbyReplicas=None)


async def test_a_gap_is_filled_with_what_was_kept_of_it_and_it_sleeps_on(pool: Pool) -> None:
    await pool.make(2, scaleInStrategy={"proactive": {"statePreservation": "Online"}})
    await pool.settled(2)
    await take(pool, 1, 1)
    claim = uid(await kept(pool, 1))
    await pool.change(standby=standby(1, "Online"))
    await pool.settled(1, readyStandbyReplicas=1, preservedStates=0)
    assert await marked(pool) == {1: "Online"}
    assert (await record(pool, 1))["state"] == "Saved" and list(await pool.instances()) == [2]
    await pool.change(replicas=2)
    await pool.settled(2)
    assert (await pool.instances())[1]["metadata"]["annotations"][labels.RESUME_FROM] == claim


async def test_memory_that_cannot_be_saved_leaves_them_stopped_and_the_pool_says_so(pool: Pool) -> None:
    made_of = template()
    made_of["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDisk": {"capacity": "8Mi"}}]
    await pool.make(1, made_of, standby=standby(1, "Online"))
    await pool.settled(1, readyStandbyReplicas=1)
    assert await marked(pool) == {2: "Offline"}
    assert "scratch is an emptyDisk" in (await pool.says("MemoryPreserved", status="False"))["message"]
    assert await pool.herd.find(CLAIMS, "web-2-memory") is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"replicas": -1}, "spec.standby.replicas"),
        ({"replicas": 10**6}, "spec.standby.replicas"),
        ({"state": "online"}, "spec.standby.state"),
        ({"count": 1}, "spec.standby.count"),
    ],
)
async def test_what_is_misspelt_is_refused(pool: Pool, wrong: Json, said: str) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"replicas": 1, "template": template(), "standby": wrong}}
    answer = await pool.api.create(POOLS, body, pool.namespace, fieldValidation="Strict")
    assert answer.code in (400, 422) and said.rpartition(".")[2] in answer.raw.decode()
