"""Machines that people take out of a pool, and put back."""

from typing import Any

import pytest

from herder.api import labels
from tests.engines.resources import CONFIG_MAPS, PODS
from tests.machines.herd import INSTANCES, MACHINES, Json
from tests.pools.pool import FIRST, NEVER, Pool, template, uid


async def pod_of(pool: Pool, number: int) -> Json:
    instance = await pool.herd.instance(pool.vm(number))
    assert instance is not None
    (pod,) = (await pool.api.list(PODS, pool.namespace, labelSelector=f"{labels.CREATED_BY}={uid(instance)}")).items
    return pod


async def labelled(pool: Pool, number: int, value: str | None) -> None:
    async def look() -> bool:
        assert (await pod_of(pool, number))["metadata"]["labels"].get(labels.POOL) == value
        return True

    await pool.herd.eventually(look)


async def test_a_detached_machine_is_left_untouched_and_replaced_under_a_new_number(pool: Pool) -> None:
    await pool.make(2, template(marked={labels.POOL: "forged"}))
    await pool.settled(2)
    await labelled(pool, 1, "web")
    instances, pod = await pool.uids(), await pod_of(pool, 1)
    await pool.own(1)
    await pool.has(2, 3)
    await pool.settled(2, detached=["web-1"], detachedReplicas=1)
    await labelled(pool, 1, None)
    assert (await pool.uids())[1] == instances[1]
    assert uid(await pod_of(pool, 1)) == uid(pod)
    # A rollout is none of its business, nor is scaling.
    await pool.roll({"spec": {"template": {"spec": {"domain": {"memory": {"guest": "65Mi"}}}}}})
    await pool.settled(2)
    assert (await pool.uids())[1] == instances[1]
    assert (await pool.herd.machine("web-1"))["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "64Mi"

    # Back, with as little as a person may write: the pool completes the reference, takes the surplus and updates it.
    await pool.annotate(3, FIRST)
    await pool.own(1, await pool.reference())
    await pool.has(1, 2)
    owners = (await pool.herd.machine("web-1"))["metadata"]["ownerReferences"]
    assert owners == [await pool.reference(controller=True, blockOwnerDeletion=True)]
    await labelled(pool, 1, "web")
    await pool.settled(2, detachedReplicas=0)
    assert "detached" not in (await pool.get())["status"]


@pytest.mark.parametrize("written", [{"controller": True}, {"controller": False}, {}], ids=["controller", "not", "unsaid"])
async def test_reference_added_back_with_and_without_controller_true(pool: Pool, written: dict[str, Any]) -> None:
    await pool.make(1, template("Halted"))
    await pool.has(1)
    before = uid(await pool.herd.machine("web-1"))
    await pool.own(1)
    await pool.has(2)
    await pool.annotate(2, FIRST)
    await pool.own(1, await pool.reference(**written))
    await pool.has(1)
    assert uid(await pool.herd.machine("web-1")) == before
    await pool.settled(1, readyReplicas=0, detachedReplicas=0)


async def test_reference_added_back_with_a_stale_uid_or_by_two_pools(pool: Pool, second: Pool) -> None:
    """A uid of nobody is no way in; and of two pools the one whose name the machine bears."""
    await pool.make(2, template("Halted"))
    await second.make(1, template("Halted"))
    await pool.has(1, 2)
    await second.has(1)
    # It would go as an orphan, were the stale one its only owner.
    keeper = (await pool.api.create(CONFIG_MAPS, {"metadata": {"name": "keeper"}}, pool.namespace)).ok
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": uid(keeper)}
    stale = {**await pool.reference(controller=True), "uid": "00000000-0000-4000-8000-000000000000"}
    await pool.own(1, stale, owner)
    await pool.has(2, 3)
    assert uid((await pool.machines())["web-1"])
    # While nobody controls it another one may be made in its place: then it is not the one that is too many.
    await pool.annotate(2, NEVER)
    await pool.own(2, await second.reference(), await pool.reference())

    async def taken_back() -> bool:
        owners = (await pool.herd.machine("web-2"))["metadata"]["ownerReferences"]
        controllers = [one["name"] for one in owners if one.get("controller")]
        assert controllers == ["web"], owners
        return len(owners) == 2

    await pool.herd.eventually(taken_back)
    await pool.shows(replicas=2)
    await second.shows(replicas=1)
    assert await second.numbers() == [1]
    # Both say that they control it: the API server lets nobody do so.
    both = {"metadata": {"ownerReferences": [await second.reference(controller=True), await pool.reference(controller=True)]}}
    refused = await pool.api.patch(MACHINES, "web-2", both, pool.namespace)
    assert refused.code == 422
    assert (await pool.api.list(INSTANCES, pool.namespace)).items == []
