"""A lone replica whose budget lets nobody go is moved all the same, or stays where it is: at no moment is nobody ready."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from herder.api import labels, registry
from herder.api.defaults import SCHEDULER_NAME
from tests.behaviour.manifests import container, meta
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Json
from tests.engines.resources import BUDGETS, DEPLOYMENTS, PODS
from tests.machines.herd import Herd

JOBS = resource_of(registry.JOB)
APP = {"app": "web"}
# A condition that only the test makes true: until then a pod is not ready.
GATE = "tests.example.com/let-in"


class Lone:
    """A Deployment of one pod, which is ready, with a budget of minAvailable 1."""

    def __init__(self, herd: Herd, label: str, name: str) -> None:
        self.herd, self.api, self.namespace = herd, herd.api, herd.namespace
        self._label, self.job_name = label, name

    async def deploy(self) -> Json:
        for _ in range(2):
            await self.herd.node(self._label)
        spec = {
            "containers": [container(resources={"requests": {"cpu": "100m"}})],
            "readinessGates": [{"conditionType": GATE}],
            "terminationGracePeriodSeconds": 0,
            "schedulerName": SCHEDULER_NAME,
            "nodeSelector": {self._label: "yes"},
            "tolerations": [{"key": labels.VM_HOST_TAINT, "operator": "Exists"}],
        }
        template = {"metadata": {"labels": APP}, "spec": spec}
        body = {"replicas": 1, "selector": {"matchLabels": APP}, "template": template}
        metadata = meta("web", annotations={labels.SURGE: "true"})
        (await self.api.create(DEPLOYMENTS, {"metadata": metadata, "spec": body}, self.namespace)).ok  # noqa: B018
        budget = {"metadata": meta("web"), "spec": {"minAvailable": 1, "selector": {"matchLabels": APP}}}
        (await self.api.create(BUDGETS, budget, self.namespace)).ok  # noqa: B018
        return await self.let_in(())

    async def pods(self) -> list[Json]:
        listed = (await self.api.list(PODS, self.namespace, labelSelector="app=web")).items
        return [one for one in listed if "deletionTimestamp" not in one["metadata"]]

    async def comes(self, known: tuple[Json, ...]) -> Json:
        """Another pod than those that are known, once it has a node and runs."""
        uids = {one["metadata"]["uid"] for one in known}

        async def look() -> Json:
            new = [one for one in await self.pods() if one["metadata"]["uid"] not in uids]
            assert [one["status"].get("phase") for one in new] == ["Running"], [one["status"] for one in new]
            return new[0]

        return await self.herd.eventually(look)

    async def let_in(self, known: tuple[Json, ...]) -> Json:
        pod = await self.comes(known)
        status = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
        await self.herd.patch(pod["metadata"]["name"], status, PODS, kind="strategic", subresource="status")

        async def look() -> Json:
            found = (await self.api.get(PODS, pod["metadata"]["name"], self.namespace)).ok
            assert is_ready(found), found["status"]
            return found

        return await self.herd.eventually(look)

    async def file(self, pod: Json) -> None:
        reference = {"namespace": self.namespace, "name": pod["metadata"]["name"]}
        (await self.api.create(JOBS, {"metadata": meta(self.job_name), "spec": {"podRef": reference}})).ok  # noqa: B018

    async def abort(self) -> None:
        (await self.api.patch(JOBS, self.job_name, {"metadata": {"annotations": {labels.ABORT: "true"}}})).ok  # noqa: B018

    async def shows(self, phase: str) -> Json:
        async def look() -> Json:
            status = (await self.api.get(JOBS, self.job_name)).ok.get("status", {})
            assert status.get("phase") == phase, status
            return status

        return await self.herd.eventually(look)

    async def has_only(self, pod: Json) -> Json:
        async def look() -> Json:
            left = await self.pods()
            assert [one["metadata"]["uid"] for one in left] == [pod["metadata"]["uid"]], [one["metadata"] for one in left]
            return left[0]

        return await self.herd.eventually(look)

    async def fewest_ready(self, since: str, until: Json) -> int:
        """Of the pods that a Service would find, how many were ready when there were fewest of them: by each event since that
        version, up to this state of a pod."""
        ready = {pod["metadata"]["uid"] for pod in await self._at(since)}
        fewest = len(ready)
        async with self.api.watch(PODS, self.namespace, resourceVersion=since, labelSelector="app=web") as watch:
            while True:
                event = await watch.next()
                uid = event.object["metadata"]["uid"]
                serves = event.type != "DELETED" and is_ready(event.object) and "deletionTimestamp" not in event.object["metadata"]
                (ready.add if serves else ready.discard)(uid)
                fewest = min(fewest, len(ready))
                if uid == until["metadata"]["uid"] and event.version == until["metadata"]["resourceVersion"]:
                    return fewest

    async def _at(self, version: str) -> list[Json]:
        listed = await self.api.list(PODS, self.namespace, resourceVersion=version, resourceVersionMatch="Exact")
        return [pod for pod in listed.items if is_ready(pod)]


def is_ready(pod: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


@pytest.fixture
async def lone(herd: Herd, unique: Callable[..., str]) -> AsyncIterator[Lone]:
    made = Lone(herd, unique("surge"), unique("job"))
    yield made
    await herd.api.delete(JOBS, made.job_name)


async def _mark(lone: Lone, pod: Json, value: str) -> Json:
    """A state of the pod that comes after everything that was seen."""
    return await lone.herd.patch(pod["metadata"]["name"], {"metadata": {"annotations": {"seen": value}}}, PODS)


async def test_a_lone_replica_is_moved_and_never_is_nobody_ready(lone: Lone) -> None:
    old = await lone.deploy()
    since = (await _mark(lone, old, "begin"))["metadata"]["resourceVersion"]
    await lone.file(old)
    waiting = await lone.comes((old,))
    held = await lone.shows("Running")
    assert held["strategy"] == "Surge"
    assert {one["metadata"]["uid"] for one in await lone.pods()} == {one["metadata"]["uid"] for one in (old, waiting)}
    new = await lone.let_in((old,))
    status = await lone.shows("Succeed")
    assert status["podRef"]["uid"] == new["metadata"]["uid"] and status["nodeName"] != old["spec"]["nodeName"]
    await lone.has_only(new)
    assert await lone.fewest_ready(since, await _mark(lone, new, "end")) == 1


async def test_a_replacement_that_is_never_ready_goes_and_the_lone_replica_stays(lone: Lone) -> None:
    old = await lone.deploy()
    since = (await _mark(lone, old, "begin"))["metadata"]["resourceVersion"]
    await lone.file(old)
    await lone.comes((old,))
    await lone.abort()
    await lone.shows("Aborted")
    left = await lone.has_only(old)
    assert left["metadata"]["labels"] == old["metadata"]["labels"] and len(left["metadata"]["ownerReferences"]) == 1
    assert await lone.fewest_ready(since, await _mark(lone, old, "end")) == 1
