"""A node that the cluster no longer knows has no guests by the time the cluster hears of it again."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.guest import GuestDefinition, Owner
from herder.api.kinds.domain import Devices, Domain
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.kube.errors import Forbidden
from herder.kube.resources import NODES, Key
from herder.nodes import leaving
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from herder.server.request import AUTHENTICATED, User
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, engine_inside

NODE = "/api/v1/nodes/n1"
AGENT = User("system:node:n1", ("system:nodes", AUTHENTICATED))
DEFINITION = GuestDefinition(
    instance=Owner(namespace="default", name="i", uid="u"), spec=VirtualMachineInstanceSpec(domain=Domain(devices=Devices()))
)
GUEST = {"instance": {"namespace": "default", "name": "i", "uid": "u"}, "spec": {"domain": {"devices": {}}}}


class Outliving(SimulatedRuntime):
    """Its guests are there before the agent is; of each that is removed it knows whether the Node was there."""

    def __init__(self, inside: Inside) -> None:
        super().__init__("n1", RealWorld(), Network(), version="1")
        self._inside = inside
        self.removed: list[tuple[str, bool]] = []

    async def remove(self, guest: str) -> None:
        if guest in self.guests():
            self.removed.append((guest, self._inside.store.get("nodes", "n1") is not None))
        await super().remove(guest)


@asynccontextmanager
async def running(inside: Inside, runtime: Outliving) -> AsyncGenerator[None]:
    client = Client(InsideTransport(inside.router, "agent", user=AGENT), "agent")
    settings = NodeSettings(name="n1", tainted=True)
    agent = NodeAgent(client, RealWorld(), settings, runtime, Parts(volumes=NoVolumes()), CollectorRegistry())
    task = asyncio.create_task(agent.run())
    try:
        await asyncio.wait_for(agent.registered.wait(), 30)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def bound(inside: Inside, says_it_runs: bool = True) -> str:
    """A pod on the node; its uid."""
    metadata = {"name": "p", "annotations": {"herder.dev/guest": json.dumps(GUEST)}}
    spec = {"nodeName": "n1", "restartPolicy": "Never", "containers": [{"name": "compute", "image": "x"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    code, made = await inside.ask("POST", "/api/v1/namespaces/default/pods", body)
    assert code == 201, made
    if not says_it_runs:
        return made["metadata"]["uid"]
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "compute", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    made["status"] = {**made["status"], "phase": "Running", "containerStatuses": [container]}
    code, made = await inside.ask("PUT", "/api/v1/namespaces/default/pods/p/status", made)
    assert code == 200, made
    return made["metadata"]["uid"]


async def phase(inside: Inside) -> Any:
    return (await inside.ask("GET", "/api/v1/namespaces/default/pods/p"))[1]["status"]["phase"]


@pytest.mark.slow
async def test_guests_of_pods_that_are_gone_end_before_the_node_is_there(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        runtime = Outliving(inside)
        await runtime.start(Order("gone", DEFINITION, {}))
        async with running(inside, runtime):
            assert runtime.removed == [("gone", False)]


@pytest.mark.slow
async def test_a_node_that_was_deleted_while_its_agent_was_away(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        runtime = Outliving(inside)
        uid = await bound(inside)
        await runtime.start(Order(uid, DEFINITION, {}))
        async with running(inside, runtime):
            assert runtime.removed == [(uid, False)]

            async def told() -> bool:
                return await phase(inside) == "Failed"

            await eventually(told)
            assert runtime.guests() == []


@pytest.mark.slow
async def test_a_node_that_is_still_there_keeps_its_guests(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        runtime = Outliving(inside)
        uid = await bound(inside)
        await inside.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        await runtime.start(Order(uid, DEFINITION, {}))
        async with running(inside, runtime):

            async def seen() -> bool:
                return (await inside.ask("GET", "/api/v1/namespaces/default/pods/p"))[1]["status"].get("hostIP") is not None

            await eventually(seen)
            assert (runtime.removed, runtime.guests()) == ([], [uid])


@pytest.mark.slow
async def test_a_node_that_somebody_made_again_is_another_one(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        runtime = Outliving(inside)
        async with running(inside, runtime):
            uid = await bound(inside, says_it_runs=False)

            async def runs() -> bool:
                return uid in runtime.guests()

            await eventually(runs)
            # In one step, so that the agent never sees it gone.
            await inside.ask("DELETE", NODE)
            await inside.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})

            async def ended() -> bool:
                return [one for one, _ in runtime.removed] == [uid] and await phase(inside) == "Failed"

            await eventually(ended)


# --- a Node that is deleted under its agent -------------------------------------------------------------------------------------


class Stubborn(Outliving):
    """Its guests end only when they are told to by the test; of each that is removed it knows whether the Node was there."""

    def __init__(self, inside: Inside) -> None:
        super().__init__(inside)
        self.asked: list[str] = []
        self.may_end = asyncio.Event()

    async def shut_down(self, guest: str) -> None:
        self.asked.append(guest)
        if self.may_end.is_set():
            await super().shut_down(guest)

    async def remove(self, guest: str) -> None:
        await self.may_end.wait()
        await super().remove(guest)


async def node_of(inside: Inside) -> dict[str, Any] | None:
    code, found = await inside.ask("GET", NODE)
    return found if code == 200 else None


async def has_guest(inside: Inside, runtime: Outliving) -> str:
    uid = await bound(inside, says_it_runs=False)

    async def runs() -> bool:
        status = runtime.status(uid)
        return status is not None and status.state == "Running" and await phase(inside) == "Running"

    await eventually(runs)
    return uid


@pytest.mark.slow
async def test_a_node_that_is_deleted_stays_until_its_last_guest_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "PATIENCE", 0.1)
    async with engine_inside(tmp_path) as inside:
        runtime = Stubborn(inside)
        async with running(inside, runtime):
            uid = await has_guest(inside, runtime)
            first = await node_of(inside)
            assert first is not None
            await inside.ask("DELETE", NODE)

            async def not_ready() -> bool:
                node = await node_of(inside)
                assert node is not None and node["metadata"]["uid"] == first["metadata"]["uid"]
                return any(one["type"] == "Ready" and one["status"] == "False" for one in node["status"]["conditions"])

            await eventually(not_ready)
            assert (runtime.asked, runtime.removed, await phase(inside)) == ([uid], [], "Running")
            runtime.may_end.set()

            async def is_another() -> bool:
                node = await node_of(inside)
                return node is not None and node["metadata"]["uid"] != first["metadata"]["uid"] and await phase(inside) == "Failed"

            await eventually(is_another)
            assert runtime.removed == [(uid, True)], "it was ended while its Node was there"


@pytest.mark.slow
async def test_an_agent_that_is_restarted_meanwhile_goes_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "PATIENCE", 0.1)
    async with engine_inside(tmp_path) as inside:
        runtime = Stubborn(inside)
        async with running(inside, runtime):
            uid = await has_guest(inside, runtime)
            first = await node_of(inside)
            await inside.ask("DELETE", NODE)
        assert (await node_of(inside) or {})["metadata"]["uid"] == (first or {})["metadata"]["uid"]
        runtime.may_end.set()
        async with running(inside, runtime):
            assert runtime.removed == [(uid, True)]
            assert (await node_of(inside) or {})["metadata"]["uid"] != (first or {})["metadata"]["uid"]


@pytest.mark.slow
async def test_nothing_is_started_on_a_node_that_is_being_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "PATIENCE", 0.1)
    async with engine_inside(tmp_path) as inside:
        runtime = Stubborn(inside)
        async with running(inside, runtime):
            first = await has_guest(inside, runtime)
            await inside.ask("DELETE", NODE)

            async def asked() -> bool:
                return runtime.asked == [first]

            await eventually(asked)
            metadata = {"name": "late", "annotations": {"herder.dev/guest": json.dumps(GUEST)}}
            spec = {"nodeName": "n1", "restartPolicy": "Never", "containers": [{"name": "compute", "image": "x"}]}
            await inside.ask(
                "POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            )
            runtime.may_end.set()

            async def given_up() -> bool:
                return (await inside.ask("GET", "/api/v1/namespaces/default/pods/late"))[1]["status"]["phase"] == "Failed"

            await eventually(given_up)
            assert [guest for guest, _ in runtime.removed] == [first]


@pytest.mark.slow
async def test_a_finalizer_that_somebody_takes_away_comes_back(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside, running(inside, Outliving(inside)):
        assert (await node_of(inside) or {})["metadata"]["finalizers"] == [labels.NODE_FINALIZER]
        node = await node_of(inside) or {}
        node["metadata"]["finalizers"] = ["example.com/other"]
        assert (await inside.ask("PUT", NODE, node))[0] == 200

        async def back() -> bool:
            finalizers = (await node_of(inside) or {})["metadata"]["finalizers"]
            return sorted(finalizers) == ["example.com/other", labels.NODE_FINALIZER]

        await eventually(back)


@pytest.mark.slow
async def test_a_node_may_not_touch_the_finalizers_of_others(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "finalizers": ["example.com/other"]}}
        assert (await inside.ask("POST", "/api/v1/nodes", document))[0] == 201
        agent = Client(InsideTransport(inside.router, "agent", user=AGENT), "agent")
        key = Key("", "n1")
        for refused in ([], ["example.com/other", "example.com/mine"]):
            with pytest.raises(Forbidden, match=r"finalizers other than herder\.dev/guests"):
                await agent.patch(NODES, key, {"metadata": {"finalizers": refused}})
        await agent.patch(NODES, key, {"metadata": {"finalizers": ["example.com/other", labels.NODE_FINALIZER]}})
        left = await agent.patch(NODES, key, {"metadata": {"finalizers": ["example.com/other"]}})
        assert list(left.finalizers) == ["example.com/other"]
