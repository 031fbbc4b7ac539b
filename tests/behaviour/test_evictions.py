"""An eviction deletes a pod, unless a budget says that too many would be away."""

import asyncio

import pytest

from tests.behaviour.disruptions import (
    REFUSED,
    budget,
    budget_status,
    condition_of,
    evict,
    eviction,
    numbers,
    running_pod,
    waiting_pod,
)
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import BUDGETS, PODS
from tests.engines.waiting import eventually

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def settled(api: Api, namespace: str, name: str, wanted: tuple[int, int, int, int]) -> None:
    async def look() -> bool:
        status = await budget_status(api, namespace, name)
        assert numbers(status) == wanted
        return status.get("observedGeneration") == 1

    await eventually(look)


def refused_by_budget(reply: Reply, message: str) -> None:
    details = reply.refused(429, "TooManyRequests")
    assert details["causes"] == [{"reason": "DisruptionBudget", "message": message}]
    assert reply.message == REFUSED


async def is_there(api: Api, namespace: str, name: str) -> bool:
    reply = await api.get(PODS, name, namespace)
    return reply.code == 200 and "deletionTimestamp" not in reply.ok["metadata"]


async def test_a_pod_without_a_node_goes_at_once(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    reply = await evict(api, namespace, "a")
    assert (reply.code, reply.body) == (201, SUCCESS)
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_a_running_pod_is_told_why_and_gets_its_grace(api: Api, namespace: str) -> None:
    before = await running_pod(api, namespace, "a", "x")
    assert (await evict(api, namespace, "a")).code == 201
    after = (await api.get(PODS, "a", namespace)).ok
    assert after["metadata"]["deletionGracePeriodSeconds"] == 30
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["managedFields"] == before["metadata"]["managedFields"]
    condition = condition_of(after, "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    assert (await evict(api, namespace, "a")).code == 201


async def test_the_options_of_a_deletion_are_heard(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    assert (await evict(api, namespace, "a", eviction("a", deleteOptions={"gracePeriodSeconds": 0}))).code == 201
    assert (await api.get(PODS, "a", namespace)).code == 404


@pytest.mark.parametrize("how", ["query", "options"])
async def test_a_dry_run_evicts_nobody(api: Api, namespace: str, how: str) -> None:
    before = await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "x", minAvailable=0)
    await settled(api, namespace, "x", (1, 1, 0, 1))
    if how == "query":
        reply = await evict(api, namespace, "a", dryRun="All")
    else:
        reply = await evict(api, namespace, "a", eviction("a", deleteOptions={"dryRun": ["All"]}))
    assert reply.body == SUCCESS
    assert (await api.get(PODS, "a", namespace)).ok == before
    assert (await budget_status(api, namespace, "x"))["disruptionsAllowed"] == 1


async def test_the_older_version_of_an_eviction_is_taken(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    assert (await evict(api, namespace, "a", eviction("a", "v1beta1"), dryRun="All")).code == 201
    assert (await evict(api, namespace, "a", {"metadata": {"name": "a"}}, dryRun="All")).code == 201
    (await evict(api, namespace, "a", eviction("a", "v1alpha1"))).refused(400, "BadRequest")


async def test_a_pod_that_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    assert (await evict(api, namespace, "absent")).refused(404, "NotFound") == {"name": "absent", "kind": "pods"}


async def test_only_this_very_pod_may_be_meant(api: Api, namespace: str) -> None:
    pod = await running_pod(api, namespace, "a", "x")
    stale = eviction("a", deleteOptions={"preconditions": {"resourceVersion": "1"}})
    reply = await evict(api, namespace, "a", stale)
    assert reply.refused(409, "Conflict") == {"name": "a", "kind": "Pod"}
    exact = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
    assert (await evict(api, namespace, "a", eviction("a", deleteOptions={"preconditions": exact}))).code == 201


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (eviction("b"), 400, "BadRequest"),
        ({}, 400, "BadRequest"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, 400, "BadRequest"),
        (eviction("a", deleteOptions={"dryRun": ["Some"]}), 422, "Invalid"),
        (eviction("a", deleteOptions={"propagationPolicy": "Never"}), 422, "Invalid"),
        (eviction("a", deleteOptions={"ignoreStoreReadErrorWithClusterBreakingPotential": True}), 422, "Invalid"),
    ],
    ids=["another name", "nothing", "another kind", "a strange dry run", "a strange policy", "a dangerous option"],
)
async def test_what_is_no_eviction_is_refused(api: Api, namespace: str, body: Json, code: int, reason: str) -> None:
    await waiting_pod(api, namespace, "a")
    (await evict(api, namespace, "a", body)).refused(code, reason)
    assert await is_there(api, namespace, "a")


async def test_a_budget_is_spent_and_then_refuses(api: Api, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await running_pod(api, namespace, name, "x")
    await budget(api, namespace, "x", minAvailable=2)
    await settled(api, namespace, "x", (3, 3, 2, 1))
    assert (await evict(api, namespace, "a")).code == 201
    reply = await evict(api, namespace, "b")
    details = reply.refused(429, "TooManyRequests")
    assert details["causes"][0]["reason"] == "DisruptionBudget"
    await settled(api, namespace, "x", (3, 2, 2, 0))
    refused_by_budget(await evict(api, namespace, "b"), "The disruption budget x needs 2 healthy pods and has 2 currently")
    assert await is_there(api, namespace, "b")
    # The one that goes already may be asked to go again.
    assert (await evict(api, namespace, "a")).code == 201


async def test_many_at_once_cannot_overspend_it(api: Api, namespace: str) -> None:
    names = [f"p{number}" for number in range(6)]
    for name in names:
        await running_pod(api, namespace, name, "x")
    await budget(api, namespace, "x", minAvailable=4)
    await settled(api, namespace, "x", (6, 6, 4, 2))
    replies = await asyncio.gather(*(evict(api, namespace, name) for name in names))
    assert sorted(reply.code for reply in replies) == [201, 201, 429, 429, 429, 429]


async def test_ended_and_unplaced_pods_are_not_counted(api: Api, namespace: str) -> None:
    await budget(api, namespace, "x", minAvailable=9)
    await running_pod(api, namespace, "done", "x", phase="Succeeded", ready=False)
    await running_pod(api, namespace, "broken", "x", phase="Failed", ready=False)
    await waiting_pod(api, namespace, "waiting", {"labels": {"app": "x"}})
    for name in ("done", "broken", "waiting"):
        assert (await evict(api, namespace, name)).code == 201


async def test_an_unready_pod_goes_while_the_others_suffice(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "well", "x")
    await running_pod(api, namespace, "ill", "x", ready=False)
    await budget(api, namespace, "x", minAvailable=1)
    await settled(api, namespace, "x", (2, 1, 1, 0))
    refused_by_budget(await evict(api, namespace, "well"), "The disruption budget x needs 1 healthy pods and has 1 currently")
    assert (await evict(api, namespace, "ill")).code == 201


async def test_an_unready_pod_stays_where_the_others_do_not_suffice(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "ill", "x", ready=False)
    await budget(api, namespace, "x", minAvailable=2)
    await settled(api, namespace, "x", (1, 0, 2, 0))
    refused_by_budget(await evict(api, namespace, "ill"), "The disruption budget x needs 2 healthy pods and has 0 currently")


async def test_unless_the_budget_says_that_unready_pods_may_always_go(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "well", "x")
    await running_pod(api, namespace, "ill", "x", ready=False)
    await budget(api, namespace, "x", minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    await settled(api, namespace, "x", (2, 1, 2, 0))
    (await evict(api, namespace, "well")).refused(429, "TooManyRequests")
    assert (await evict(api, namespace, "ill")).code == 201


async def test_a_pod_of_two_budgets_cannot_be_judged(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "x", "one", minAvailable=0)
    await budget(api, namespace, "x", "two", minAvailable=0)
    reply = await evict(api, namespace, "a")
    reply.refused(500, "")
    assert reply.message == "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert await is_there(api, namespace, "a")


async def test_a_budget_of_other_pods_does_not_matter(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "y", minAvailable=9)
    await api.create(BUDGETS, {"metadata": {"name": "nobody"}, "spec": {"minAvailable": 9}}, namespace)
    assert (await evict(api, namespace, "a")).code == 201
