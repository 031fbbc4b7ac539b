"""Which pod takes which room: crossed, of another size than what is held, spread; and how many are looked at at once."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from herder.api.core import Pod
from herder.api.labels import RESERVATION_ALLOCATED
from herder.kube.client import Selection
from herder.kube.resources import NODES, PODS, Key
from herder.kube.transport import Reply
from tests.simulation.cluster import CONTROLLERS
from tests.simulation.jobs.cluster import Cluster, in_cluster
from tests.simulation.wire import Go, Sent

Json = dict[str, Any]
# Shorter than a call is waited for.
HELD = 8.0


def _hold_eviction_of(cluster: Cluster, pod: str) -> None:
    """It is on its way for a while, whoever sends it."""

    async def hold(sent: Sent, go: Go) -> Reply:
        if sent.call.path.endswith(f"/{pod}/eviction"):
            await asyncio.sleep(HELD)
        return await go()

    cluster.simulation.wire(CONTROLLERS).around.append(hold)


async def _replacements(cluster: Cluster, before: set[str]) -> list[Pod]:
    """In the order in which they were made."""
    listed = (await cluster.client.list(PODS, Selection("default"))).items
    new = [one for one in listed if one.uid not in before]
    return sorted(new, key=lambda one: str(one.metadata.creation_timestamp))


def _took(pod: Pod) -> str:
    return msgspec.json.decode(pod.annotations.get(RESERVATION_ALLOCATED, "{}")).get("name", "")


def test_a_room_that_anothers_replacement_took_is_made_anew_before_its_own_pod_goes() -> None:
    """Replacements of one ReplicaSet, crossed: the first job's room is open, and a busy server does not let its pod go. The second
    one's replacement takes the older room. Nobody goes before there is room for who comes."""

    async def story(cluster: Cluster) -> None:
        await cluster.settings("maxMigratingPerNode: 9")
        pods = await cluster.deploy("web", 4)
        before = await cluster.pods()
        refused: list[str] = []

        async def refuse(sent: Sent, go: Go) -> Reply:
            if not sent.call.path.endswith(f"/{pods[0]}/eviction") or len(refused) == 4:
                return await go()
            refused.append(sent.call.path)
            return _busy()

        cluster.simulation.wire(CONTROLLERS).around.append(refuse)
        await cluster.file("a", pods[0])
        await asyncio.sleep(2)
        await cluster.file("b", pods[1])
        await asyncio.sleep(5)
        (crossed,) = await _replacements(cluster, before)
        first = await cluster.job("a")
        assert (_took(crossed), first.status is not None and first.status.phase) == (f"job-{first.uid}", "Running")
        await asyncio.sleep(60)
        assert (await cluster.statuses())["a"] == ("Succeed", "")
        came = await _replacements(cluster, before)
        assert len(came) == 2 and all(_took(one) for one in came), "each has come to room that was held for it"
        first = await cluster.job("a")
        assert first.status is not None and first.status.pod_ref is not None
        assert first.status.pod_ref.uid == came[1].uid
        await cluster.nothing_is_left()

    in_cluster(story)


def _busy() -> Reply:
    status = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "busy", "code": 429}
    return Reply(429, msgspec.json.encode({**status, "apiVersion": "v1", "metadata": {}, "details": {"retryAfterSeconds": 2}}))


@pytest.mark.parametrize("most", [1, 2])
def test_so_many_jobs_are_looked_at_at_once_as_the_settings_say(most: int) -> None:
    """maxConcurrentReconciles: while one waits for the answer to its eviction, the other one goes on, or does not."""

    async def story(cluster: Cluster) -> None:
        await cluster.settings(f"maxConcurrentReconciles: {most}\nmaxMigratingPerNode: 9")
        first, second = [(await cluster.deploy(name, 1))[0] for name in ("a", "b")]
        _hold_eviction_of(cluster, first)
        await cluster.file("a", first, mode="EvictDirectly")
        await asyncio.sleep(2)
        await cluster.file("b", second, mode="EvictDirectly")
        await asyncio.sleep(HELD - 4)
        (phase, _) = (await cluster.statuses())["b"]
        assert phase == ("Succeed" if most > 1 else "Running")
        await asyncio.sleep(30)
        assert set((await cluster.statuses()).values()) == {("Succeed", "")}

    in_cluster(story)


@pytest.mark.parametrize(("held", "elsewhere"), [("4", False), ("1", False), ("1", True)], ids=["smaller", "larger", "too large"])
def test_a_replacement_of_another_size_than_its_room(held: str, elsewhere: bool) -> None:
    """It asks for three of eight processors. A smaller one gives back what it does not need; a larger one takes what is free beside
    its room, and where that is not enough it goes elsewhere, and the job ends and gives the room back."""

    async def story(cluster: Cluster) -> None:
        await cluster.client.patch(NODES, Key("", "node-3"), {"spec": {"unschedulable": True}})
        containers = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "3"}}}]
        (pod,) = await cluster.deploy("web", 1, containers=containers)
        before = await cluster.pod("web")
        (room_on,) = {"node-1", "node-2"} - {before.spec.node_name}
        if elsewhere:
            await _fill(cluster, room_on, "6")
            await cluster.client.patch(NODES, Key("", "node-3"), {"spec": {"unschedulable": None}})
        template = {"containers": [{"name": "main", "resources": {"requests": {"cpu": held}}}]}
        pinned = {"spec": {"template": {"spec": {**template, "nodeSelector": {"kubernetes.io/hostname": room_on}}}}}
        await cluster.file("a", pod, reservationOptions={"template": pinned})
        await asyncio.sleep(60)
        after = await cluster.pod("web")
        # Elsewhere may be where it was: nobody is there any more.
        assert (after.status.phase, after.spec.node_name == room_on) == ("Running", not elsewhere)
        assert await cluster.statuses() == {"a": ("Failed", "NoReplacement") if elsewhere else ("Succeed", "")}
        assert bool(_took(after)) == (not elsewhere)
        await cluster.nothing_is_left()
        # What is free now is what the pod does not use.
        if not elsewhere:
            await _fill(cluster, room_on, "5")

    in_cluster(story)


async def _fill(cluster: Cluster, node: str, cpu: str) -> None:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": node}}
    await cluster.client.create(PODS, {"metadata": {"name": "filler", "namespace": "default"}, "spec": spec})
    await asyncio.sleep(5)
    assert (await cluster.client.get(PODS, Key("default", "filler"))).spec.node_name == node


def test_spread_over_zones_that_only_holds_without_the_old_pod() -> None:
    """Zone b is closed and empty: beside the old pod another one in zone a would be one too many. All nodes count, also the old
    pod's, which its room must not be on."""

    async def story(cluster: Cluster) -> None:
        for name, zone in (("node-1", "a"), ("node-2", "a"), ("node-3", "b")):
            patch = {"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}, "spec": {"unschedulable": zone == "b" or None}}
            await cluster.client.patch(NODES, Key("", name), patch)
        labelled = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "topology.kubernetes.io/zone"}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Ignore", **labelled}
        (pod,) = await cluster.deploy("web", 1, topologySpreadConstraints=[spread])
        before = await cluster.pod("web")
        await _stays_out(cluster, before)
        await cluster.file("a", pod)
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"a": ("Succeed", "")}
        assert {before.spec.node_name, (await cluster.pod("web")).spec.node_name} == {"node-1", "node-2"}

    in_cluster(story)


async def _stays_out(cluster: Cluster, pod: Pod) -> None:
    """A second pod of its kind finds no place beside it."""
    patch: Json = {"metadata": {"name": "second", "namespace": "default", "labels": {"app": "web"}}}
    constraints = msgspec.to_builtins(pod.spec.topology_spread_constraints)
    spec = {"containers": [{"name": "main", "image": "app:1"}], "topologySpreadConstraints": constraints}
    await cluster.client.create(PODS, {**patch, "spec": spec})
    await asyncio.sleep(5)
    assert not (await cluster.client.get(PODS, Key("default", "second"))).spec.node_name
    await cluster.client.delete(PODS, Key("default", "second"), grace_period_seconds=0)
    await asyncio.sleep(2)
