"""A pod that a job takes from its ReplicaSet, and what becomes of it: the writes are the job's own, everybody else is real."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import Pod, ReplicaSet
from herder.api.kinds import PodMigrationJob
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.pod_release import release_patch, return_patch
from herder.rules.jobs.execution.snapshot import JobSnapshot
from tests.behaviour.disruptions import budget, budget_status
from tests.engines.api import Json
from tests.engines.resources import DEPLOYMENTS, PODS
from tests.workloads.place import HASH, Place

# Each says that the lone pod must stay. One at a time: of several budgets of one pod Kubernetes keeps only one up to date.
BUDGETS: list[Json] = [{"minAvailable": 1}, {"minAvailable": "100%"}, {"maxUnavailable": 0}]


async def deployed(place: Place, **spec: Any) -> tuple[Json, Json]:
    """Its only pod, which is ready, and a job that is about that pod."""
    deployment = await place.deploy(1, **spec)
    await place.rolled_out()
    (pod,), (replica_set,) = await place.pods(), await place.sets()
    references = {"controllerRef": _reference(replica_set, "ReplicaSet"), "workloadRef": _reference(deployment, "Deployment")}
    job = {
        "metadata": {"name": "move"},
        "spec": {"podRef": {"namespace": place.namespace, "name": pod["metadata"]["name"]}},
        "status": {"phase": "Running", "strategy": "Surge", "podUID": pod["metadata"]["uid"], **references},
    }
    return pod, job


def _reference(thing: Json, kind: str) -> Json:
    metadata = thing["metadata"]
    return {"apiVersion": "apps/v1", "kind": kind, **{name: metadata[name] for name in ("namespace", "name", "uid")}}


async def patch(place: Place, pod: Json, wanted: Json) -> None:
    (await place.api.patch(PODS, pod["metadata"]["name"], wanted, place.namespace, kind="strategic")).ok  # noqa: B018


async def let_go(place: Place, pod: Json, job: Json) -> Json:
    """The other pod, once there is one, which is not ready."""
    await patch(place, pod, release_patch(msgspec.convert(job, PodMigrationJob)))

    async def released() -> bool:
        owners = (await found(place, pod))["metadata"]["ownerReferences"]
        assert [one["uid"] for one in owners] == [job["status"]["workloadRef"]["uid"]], owners
        return True

    await place.eventually(released)
    pods = await place.has_pods(2)
    return next(one for one in pods if one["metadata"]["uid"] != pod["metadata"]["uid"])


async def give_back(place: Place, pod: Json, job: Json, replica_set: Json | None) -> None:
    view = msgspec.convert(replica_set, ReplicaSet) if replica_set is not None else None
    snapshot = JobSnapshot(job=msgspec.convert(job, PodMigrationJob), config=JobsConfig(), replica_set=view)
    wanted = return_patch(snapshot, msgspec.convert(await found(place, pod), Pod))
    assert wanted is not None
    await patch(place, pod, wanted)


async def found(place: Place, pod: Json) -> Json:
    return (await place.api.get(PODS, pod["metadata"]["name"], place.namespace)).ok


async def is_gone(place: Place, pod: Json) -> None:
    async def look() -> bool:
        reply = await place.api.get(PODS, pod["metadata"]["name"], place.namespace)
        return reply.code == 404 or "deletionTimestamp" in reply.ok["metadata"]

    await place.eventually(look)


async def allowed(place: Place, expected: int) -> None:
    async def look() -> bool:
        status = await budget_status(place.api, place.namespace, "web")
        assert status.get("disruptionsAllowed") == expected, status
        assert status.get("observedGeneration") == 1, status
        return True

    await place.eventually(look)


@pytest.mark.parametrize("spec", BUDGETS, ids=str)
async def test_a_budget_lets_a_lone_pod_go_once_the_one_that_was_made_in_its_place_is_ready(place: Place, spec: Json) -> None:
    pod, job = await deployed(place)
    await budget(place.api, place.namespace, "web", **spec)
    await allowed(place, 0)
    other = await let_go(place, pod, job)
    kept = (await found(place, pod))["metadata"]["labels"]
    assert kept == {key: value for key, value in pod["metadata"]["labels"].items() if key != HASH}
    await allowed(place, 0)
    await place.ready(other)
    await allowed(place, 1)


async def test_a_pod_that_is_given_back_stays_and_the_one_that_was_made_in_its_place_goes(place: Place) -> None:
    pod, job = await deployed(place)
    other = await let_go(place, pod, job)
    (replica_set,) = await place.sets()
    await give_back(place, pod, job, replica_set)
    await is_gone(place, other)
    (left,) = await place.has_pods(1)
    assert left["metadata"]["uid"] == pod["metadata"]["uid"]
    assert left["metadata"]["labels"] == pod["metadata"]["labels"]
    (owner,) = left["metadata"]["ownerReferences"]
    assert owner["uid"] == replica_set["metadata"]["uid"] and owner["controller"] is True


async def test_a_pod_that_is_let_go_still_goes_with_its_deployment(place: Place) -> None:
    pod, job = await deployed(place)
    await let_go(place, pod, job)
    await place.api.delete(DEPLOYMENTS, "web", place.namespace)
    await is_gone(place, pod)


async def test_a_pod_that_is_given_back_to_a_replica_set_that_is_gone_goes_too(place: Place) -> None:
    pod, job = await deployed(place, revisionHistoryLimit=0)
    other = await let_go(place, pod, job)
    await place.ready(other)
    await place.image("registry.example.com/app:2")
    await place.rolled_out()

    async def old_is_gone() -> bool:
        return job["status"]["controllerRef"]["uid"] not in [one["metadata"]["uid"] for one in await place.sets()]

    await place.eventually(old_is_gone)
    await give_back(place, pod, job, None)
    await is_gone(place, pod)
