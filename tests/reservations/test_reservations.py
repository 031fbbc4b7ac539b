"""Room for pods that do not exist yet, for the pods of real workloads (seed 004)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from herder.api import labels, registry
from herder.api.defaults import SCHEDULER_NAME
from tests.behaviour.manifests import container, meta
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Json
from tests.engines.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS
from tests.machines.herd import Herd

RESERVATIONS = resource_of(registry.RESERVATION)
APP = {"app": "web"}
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "20"}


class Stage:
    """Two nodes of the test's own, each with four processors."""

    def __init__(self, herd: Herd, label: str, nodes: list[str], unique: Callable[..., str]) -> None:
        self.herd = herd
        self.nodes = nodes
        self._label = label
        self._unique = unique
        self.made: list[str] = []

    def spec(self, cpu: str, **more: Any) -> Json:
        """Of a pod that goes to these nodes, and asks for so much."""
        tolerates = [{"key": labels.VM_HOST_TAINT, "operator": "Exists"}]
        placed = {"schedulerName": SCHEDULER_NAME, "nodeSelector": {self._label: "yes"}, "tolerations": tolerates}
        return {"containers": [container(resources={"requests": {"cpu": cpu}})], **placed, **more}

    async def deploy(self, replicas: int, cpu: str, **more: Any) -> None:
        template = {"metadata": {"labels": APP}, "spec": self.spec(cpu, terminationGracePeriodSeconds=0, **more)}
        spec = {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template}
        (await self.herd.api.create(DEPLOYMENTS, {"metadata": meta("web"), "spec": spec}, self.herd.namespace)).ok  # noqa: B018

    async def pod(self, name: str, cpu: str) -> None:
        body = {"metadata": meta(name), "spec": self.spec(cpu)}
        (await self.herd.api.create(PODS, body, self.herd.namespace)).ok  # noqa: B018

    async def reserve(self, cpu: str, owners: list[Json], **more: Any) -> Json:
        name = self._unique("reservation")
        self.made.append(name)
        template = {"metadata": {"namespace": self.herd.namespace}, "spec": self.spec(cpu, **more.pop("template", {}))}
        spec = {"template": template, "owners": owners, **more}
        return (await self.herd.api.create(RESERVATIONS, {"metadata": meta(name), "spec": spec})).ok

    async def shows(self, reservation: Json, **status: Any) -> Json:
        async def look() -> Json:
            found = (await self.herd.api.get(RESERVATIONS, reservation["metadata"]["name"])).ok
            shown = found.get("status", {})
            assert {field: shown.get(field) for field in status} == status, shown
            return found

        return await self.herd.eventually(look)

    async def web(self, count: int = 1) -> list[Json]:
        """The pods of the Deployment, once so many have a node."""

        async def look() -> list[Json]:
            listed = (await self.herd.api.list(PODS, self.herd.namespace, labelSelector="app=web")).items
            placed = [pod for pod in listed if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
            assert len(placed) == len(listed) == count, [pod.get("status") for pod in listed]
            return placed

        return await self.herd.eventually(look)

    async def replica_set(self) -> Json:
        found = (await self.herd.api.list(REPLICA_SETS, self.herd.namespace)).items[0]["metadata"]
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "namespace": self.herd.namespace,
            "name": found["name"],
            "uid": found["uid"],
        }

    async def waits(self, name: str, why: str) -> None:
        async def look() -> bool:
            found = (await self.herd.api.get(PODS, name, self.herd.namespace)).ok
            told = [one.get("message", "") for one in found["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
            assert any(why in message for message in told), found["status"]
            return True

        await self.herd.eventually(look)


@pytest.fixture
async def stage(herd: Herd, unique: Callable[..., str]) -> AsyncIterator[Stage]:
    label = unique("reserved")
    nodes = [await herd.node(label, capacity=ROOM, allocatable=ROOM) for _ in range(2)]
    made = Stage(herd, label, nodes, unique)
    yield made
    for name in made.made:
        await herd.api.delete(RESERVATIONS, name)


async def test_a_pod_that_is_replaced_finds_the_room_that_was_held_for_it_and_nobody_else_does(stage: Stage) -> None:
    await stage.deploy(1, "3")
    old = (await stage.web())[0]
    held = await stage.reserve("3", [{"controller": await stage.replica_set()}])
    other = next(node for node in stage.nodes if node != old["spec"]["nodeName"])
    held = await stage.shows(held, phase="Available", nodeName=other)
    assert held["status"]["allocatable"] == {"cpu": "3"}
    await stage.pod("stranger", "2")
    await stage.waits("stranger", "Insufficient cpu")
    await stage.herd.delete(old["metadata"]["name"], PODS)

    async def replaced() -> Json:
        found = (await stage.web())[0]
        assert found["metadata"]["uid"] != old["metadata"]["uid"]
        return found

    new = await stage.herd.eventually(replaced)
    # For any other pod the node that was just emptied would be the better one.
    assert new["spec"]["nodeName"] == other
    taken = new["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-allocated"]
    assert taken == f'{{"name":"{held["metadata"]["name"]}","uid":"{held["metadata"]["uid"]}"}}'
    over = await stage.shows(held, phase="Succeeded", reason="Succeeded")
    assert [one["uid"] for one in over["status"]["currentOwners"]] == [new["metadata"]["uid"]]


async def test_it_leaves_a_cordoned_node_shares_its_room_and_expires(stage: Stage) -> None:
    await stage.deploy(0, "1")

    async def there() -> Json:
        return await stage.replica_set() if (await stage.herd.api.list(REPLICA_SETS, stage.herd.namespace)).items else {}

    owner = await stage.herd.eventually(there)
    held = await stage.reserve("3", [{"controller": owner}], allocateOnce=False)
    held = await stage.shows(held, phase="Available")
    first = held["status"]["nodeName"]
    (await stage.herd.api.patch(NODES, first, {"spec": {"unschedulable": True}})).ok  # noqa: B018
    second = next(node for node in stage.nodes if node != first)
    await stage.shows(held, phase="Available", nodeName=second)
    (await stage.herd.api.patch(NODES, first, {"spec": {"unschedulable": None}})).ok  # noqa: B018
    await stage.herd.patch("web", {"spec": {"replicas": 2}}, DEPLOYMENTS)
    assert {pod["spec"]["nodeName"] for pod in await stage.web(2)} == {second}
    await stage.shows(held, phase="Available", allocated={"cpu": "2"})
    name = held["metadata"]["name"]
    changed = await stage.herd.api.patch(RESERVATIONS, name, {"spec": {"owners": [{"object": {"name": "me"}}]}})
    assert (changed.code, "owners is immutable" in changed.body["message"]) == (422, True)
    # Also what the schema keeps as written.
    spec = held["spec"]["template"]["spec"]
    other = {
        "spec": {"template": {"spec": {"containers": [{**spec["containers"][0], "ports": [{"containerPort": 1, "hostPort": 1}]}]}}}
    }
    changed = await stage.herd.api.patch(RESERVATIONS, name, other)
    assert (changed.code, "template is immutable" in changed.body["message"]) == (422, True)
    (await stage.herd.api.patch(RESERVATIONS, name, {"spec": {"ttl": "1s"}})).ok  # noqa: B018
    await stage.shows(held, phase="Failed", reason="Expired")
