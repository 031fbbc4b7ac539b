"""What comes between a job and its end, at moments that only chance would choose elsewhere: in a cluster under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from herder.api.labels import ABORT, RESERVATION_ALLOCATED
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.resources import BUDGETS, JOBS, NAMESPACES, PODS, RESERVATIONS, STATEFUL_SETS, Key
from herder.kube.transport import Reply
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, node
from tests.simulation.jobs.cluster import Cluster, in_cluster
from tests.simulation.jobs.ledger import Allowed, Ledger
from tests.simulation.wire import Go, Sent

GATE = "example.com/let-in"


async def _let_in(cluster: Cluster, pod: str, namespace: str = "default") -> None:
    patch = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
    await cluster.client.patch(PODS, Key(namespace, pod), patch, subresource="status", content_type=STRATEGIC_PATCH)
    await asyncio.sleep(5)


@pytest.mark.parametrize("evicted", [False, True], ids=["before the eviction", "after it"])
def test_a_namespace_that_is_deleted_takes_its_job_along(evicted: bool) -> None:
    """With one node there is no room, and nobody is evicted; with two, the replacement waits for a gate."""

    async def story(cluster: Cluster) -> None:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        (pod,) = await cluster.deploy("web", 1, namespace="shop", readinessGates=[{"conditionType": GATE}])
        await _let_in(cluster, pod, "shop")
        await cluster.file("a", pod, "shop")
        await asyncio.sleep(10)
        began = (await cluster.job("a")).status
        assert began is not None and began.phase == "Running"
        assert ("Eviction" in [one.type for one in began.conditions or ()]) == evicted
        await cluster.client.delete(NAMESPACES, Key("", "shop"))
        await asyncio.sleep(120)
        assert await cluster.client.find(NAMESPACES, Key("", "shop")) is None
        assert await cluster.statuses() == {"a": ("Failed", "NoReplacement" if evicted else "MissingPod")}
        await cluster.nothing_is_left()

    in_cluster(story, nodes=2 if evicted else 1)


@pytest.mark.parametrize("by", ["abort", "deletion"])
def test_given_up_after_the_eviction_while_nobody_is_there_to_carry_it_out(by: str) -> None:
    """The controllers die with their eviction: when they are back, who was evicted still finds its room."""

    async def story(cluster: Cluster) -> None:
        (pod,) = await cluster.deploy("web", 1)
        before = await cluster.pod("web")
        lives: list[str] = []

        async def die(sent: Sent, go: Go) -> Reply:
            if not sent.call.path.endswith("/eviction") or lives:
                return await go()
            lives.append(sent.call.path)
            await go()
            sent.machine.crash("killed", 60.0)
            raise asyncio.CancelledError

        cluster.simulation.wire(CONTROLLERS).around.append(die)
        await cluster.file("a", pod)
        await asyncio.sleep(10)
        assert len(lives) == 1
        (room,) = (await cluster.client.list(RESERVATIONS)).items
        if by == "abort":
            await cluster.client.patch(JOBS, Key("", "a"), {"metadata": {"annotations": {ABORT: "true"}}})
        else:
            await cluster.client.delete(JOBS, Key("", "a"))
        await asyncio.sleep(180)
        assert await cluster.statuses() == ({"a": ("Aborted", "Aborted")} if by == "abort" else {})
        after = await cluster.pod("web")
        assert (after.uid != before.uid, after.spec.node_name) == (True, room.status.node_name)
        assert (room.metadata.uid or "none") in after.annotations[RESERVATION_ALLOCATED]
        await cluster.nothing_is_left()

    in_cluster(story, nodes=2)


@pytest.mark.parametrize("by", ["budget", "server"])
def test_paused_while_its_eviction_is_held_a_job_gives_back_its_room_and_asks_no_more(by: str) -> None:
    """A budget that holds it is asked before it evicts; a server that is busy answers the eviction itself."""
    asked: list[float] = []
    busy = [by == "server"]

    async def refuse(sent: Sent, go: Go) -> Reply:
        if not sent.call.path.endswith("/eviction"):
            return await go()
        asked.append(asyncio.get_running_loop().time())
        return _busy(1) if busy[0] else await go()

    async def story(cluster: Cluster) -> None:
        node(cluster.simulation, "node-2")
        (pod,) = await cluster.deploy("web", 1)
        before = await cluster.pods()
        await cluster.file("a", pod)
        await asyncio.sleep(5)
        if by == "budget":
            spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}
            await cluster.client.create(BUDGETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
        cluster.simulation.wire(CONTROLLERS).around.append(refuse)
        cluster.simulation.machines["node-2"].start()
        await asyncio.sleep(30)
        assert await cluster.statuses() == {"a": ("Running", "WaitingForDisruptionBudget")}
        assert bool(asked) == (by == "server")
        await cluster.change("a", paused=True)
        await asyncio.sleep(10)
        assert (await cluster.statuses(), (await cluster.client.list(RESERVATIONS)).items) == ({"a": ("Pending", "Paused")}, [])
        asked.clear()
        await asyncio.sleep(300)
        assert (asked, await cluster.pods()) == ([], before)
        busy[0] = False
        if by == "budget":
            await cluster.client.patch(BUDGETS, Key("default", "web"), {"spec": {"maxUnavailable": 1}})
        await cluster.change("a", paused=False)
        await asyncio.sleep(60)
        assert (await cluster.statuses(), len(asked)) == ({"a": ("Succeed", "")}, 1)

    in_cluster(story, nodes=1)


def _busy(seconds: int) -> Reply:
    status = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "busy", "code": 429}
    details = {"retryAfterSeconds": seconds}
    return Reply(429, msgspec.json.encode({**status, "apiVersion": "v1", "metadata": {}, "details": details}))


def test_who_says_how_long_to_wait_is_not_asked_before() -> None:
    """By itself the second try would be two seconds after the first."""

    async def story(cluster: Cluster) -> None:
        (pod,) = await cluster.deploy("web", 1)
        asked: list[float] = []

        async def refuse(sent: Sent, go: Go) -> Reply:
            if not sent.call.path.endswith("/eviction"):
                return await go()
            asked.append(asyncio.get_running_loop().time())
            return _busy(1) if len(asked) == 1 else _busy(45) if len(asked) == 2 else await go()

        cluster.simulation.wire(CONTROLLERS).around.append(refuse)
        await cluster.file("a", pod)
        await asyncio.sleep(120)
        assert await cluster.statuses() == {"a": ("Succeed", "")}
        assert len(asked) == 3 and 45 <= asked[2] - asked[1] < 50, asked

    in_cluster(story)


def test_a_pod_that_came_back_under_its_name_right_before_its_eviction_is_not_evicted() -> None:
    """The eviction is on its way when it happens, and names the uid: the server says 409."""

    async def story(cluster: Cluster) -> None:
        await cluster.deploy("db", 1, of=STATEFUL_SETS)
        meant = await cluster.pod("db")
        answers: list[int] = []

        async def replaced(sent: Sent, go: Go) -> Reply:
            if not sent.call.path.endswith("/eviction"):
                return await go()
            await cluster.client.delete(PODS, Key("default", "db-0"), grace_period_seconds=0)
            await asyncio.sleep(3)
            reply = await go()
            answers.append(reply.status)
            return reply

        cluster.simulation.wire(CONTROLLERS).around.append(replaced)
        await cluster.file("a", "db-0")
        await asyncio.sleep(60)
        assert answers == [409]
        # Its room was open already, and who came back has taken it.
        status = (await cluster.job("a")).status
        assert status is not None and status.pod_ref is not None and status.phase == "Succeed"
        other = await cluster.pod("db")
        assert (other.uid != meant.uid, other.uid, other.spec.node_name) == (True, status.pod_ref.uid, status.node_name)
        assert other.spec.node_name != meant.spec.node_name
        await cluster.nothing_is_left()

    in_cluster(story)


@pytest.mark.parametrize(("budget", "away"), [({"minAvailable": "50%"}, 1), ({"maxUnavailable": "34%"}, 2)], ids=str)
def test_percentages_of_a_budget_are_kept_to_while_many_are_moved(budget: dict[str, Any], away: int) -> None:
    """Of three: 50 % are two that stay, 34 % two that may go; both are rounded up. No limit of the settings would hold them."""

    async def story(cluster: Cluster) -> None:
        await cluster.settings("maxMigratingPerWorkload: 3\nmaxMigratingPerNode: 9\nevictQPS: '100'\nevictBurst: 9")
        ledger = Ledger(cluster.simulation, Allowed(unavailable=away, replicas={"web": 3}))
        pods = await cluster.deploy("web", 3)
        spec = {"selector": {"matchLabels": {"app": "web"}}, **budget}
        await cluster.client.create(BUDGETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
        await asyncio.sleep(5)
        for name, pod in zip("abc", pods, strict=True):
            await cluster.file(name, pod)

        async def held() -> bool:
            return list((await cluster.statuses()).values()).count(("Pending", "WaitingForDisruptionBudget")) == 3 - away

        await eventually(held)
        await asyncio.sleep(120)
        assert await cluster.statuses() == dict.fromkeys("abc", ("Succeed", ""))
        assert (ledger.wrong, len(ledger.evicted)) == ([], 3)

    in_cluster(story)
