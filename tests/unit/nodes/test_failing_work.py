"""Whatever goes wrong with a pod's work stands on the pod within seconds, and its end is carried out all the same.

One table of what can be met (`ERRORS`), at each step at which it can be met, by an agent on an engine, with a runtime that fails as
it is told to.
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from prometheus_client import CollectorRegistry

from herder.api import labels, reasons
from herder.api.guest import GuestDefinition
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.kube.errors import Forbidden
from herder.nodes import attempts, orphans
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.base import Order, Refused
from herder.nodes.runtimes.qemu.qmp import Gone, QMPError
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.server.request import AUTHENTICATED, User
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, engine_inside

PODS = "/api/v1/namespaces/default/pods"
AGENT = User("system:node:n1", ("system:nodes", AUTHENTICATED))
INSTANCE = {"instance": {"namespace": "default", "name": "i", "uid": "u"}, "spec": {"domain": {"devices": {}}}}
# What nobody foresaw, by the words that people have to find.
ERRORS: dict[str, Exception] = {
    "QEMU did not answer query-migrate in 30 s": QMPError("QEMU did not answer query-migrate in 30 s"),
    "QEMU has ended": Gone("QEMU has ended"),
    "No space left on device": OSError(errno.ENOSPC, "No space left on device", "/data/nodes/guests/x/guest.json"),
    "TimeoutError": TimeoutError(),
    "KeyError: 'disk'": KeyError("disk"),
    "AssertionError": AssertionError("refused before"),
    "Forbidden: secrets keys is forbidden": Forbidden(403, "Forbidden", "secrets keys is forbidden"),
}
INCOMING = {"migration": "m", "settings": {}, "sourceNode": "n2"}


class Scripted(SimulatedRuntime):
    """Fails, or hangs, at the steps that it is told to."""

    def __init__(self) -> None:
        super().__init__("n1", RealWorld())
        self.fails: dict[str, Exception] = {}
        self.hangs: set[str] = set()
        self.reached: list[str] = []
        # As QEMU's runtime does: a start goes on until this happens, whoever waits for it, and an end waits for the start.
        self.sees_through: asyncio.Event | None = None
        self.starting: dict[str, asyncio.Task[None]] = {}

    async def _step(self, name: str) -> None:
        self.reached.append(name)
        if name in self.hangs:
            await asyncio.Event().wait()
        if name in self.fails:
            raise self.fails[name]

    async def start(self, order: Order) -> None:
        await self._step("start")
        if self.sees_through is None:
            return await super().start(order)
        task = self.starting[order.guest] = asyncio.create_task(self._start_later(order))
        return await asyncio.shield(task)

    async def _start_later(self, order: Order) -> None:
        assert self.sees_through is not None
        await self.sees_through.wait()
        await super().start(order)

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        await self._step("prepare")
        return await super().prepare_incoming(order, migration, settings)

    async def shut_down(self, guest: str) -> None:
        await self._step("shut_down")
        await super().shut_down(guest)

    async def pause(self, guest: str) -> None:
        await self._step("pause")
        await super().pause(guest)

    async def remove(self, guest: str) -> None:
        await self._step("remove")
        if (task := self.starting.get(guest)) is not None:
            await asyncio.wait([task])
        await super().remove(guest)


class Site:
    def __init__(self, inside: Inside, runtime: Scripted) -> None:
        self.inside = inside
        self.runtime = runtime

    async def pod(self, name: str = "p", *, incoming: bool = False, annotations: dict[str, str] | None = None) -> str:
        told = {**INSTANCE, "incoming": {"machineType": "simulated-q35", "memoryBytes": 1 << 20}} if incoming else INSTANCE
        order = {labels.MIGRATION: json.dumps(INCOMING)} if incoming else {}
        metadata = {"name": name, "annotations": {labels.GUEST: json.dumps(told), **order, **(annotations or {})}}
        spec = {
            "nodeName": "n1",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "compute", "image": "x"}],
        }
        code, made = await self.inside.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        assert code == 201, made
        return made["metadata"]["uid"]

    async def find(self, name: str = "p") -> dict[str, Any] | None:
        code, pod = await self.inside.ask("GET", f"{PODS}/{name}")
        return pod if code == 200 else None

    async def report(self, name: str = "p") -> dict[str, Any]:
        pod = await self.find(name) or {}
        found = [one for one in pod.get("status", {}).get("conditions", []) if one["type"] == labels.GUEST_CONDITION]
        return json.loads(found[0]["message"]) if found else {}

    async def says(self, reason: str, words: str, name: str = "p") -> dict[str, Any]:
        async def told() -> dict[str, Any] | None:
            found = await self.report(name)
            return found if found.get("reason") == reason and words in found.get("message", "") else None

        return await eventually(told, patience=30) or {}

    async def runs(self, name: str = "p") -> None:
        async def running() -> bool:
            return (await self.report(name)).get("state") == "Running"

        await eventually(running, patience=30)

    async def delete(self, name: str = "p") -> None:
        await self.inside.ask("DELETE", f"{PODS}/{name}")

    async def is_gone(self, name: str = "p") -> None:
        async def gone() -> bool:
            return await self.find(name) is None

        await eventually(gone, patience=30)


@asynccontextmanager
async def node(tmp_path: Path) -> AsyncGenerator[Site]:
    async with engine_inside(tmp_path) as inside, agent(inside, Scripted()) as site:
        yield site


@asynccontextmanager
async def agent(inside: Inside, runtime: Scripted) -> AsyncGenerator[Site]:
    client = Client(InsideTransport(inside.router, "agent", user=AGENT), "agent")
    parts = Parts(volumes=NoVolumes())
    agent = NodeAgent(client, RealWorld(), NodeSettings(name="n1", tainted=True), runtime, parts, CollectorRegistry())
    task = asyncio.create_task(agent.run())
    try:
        await asyncio.wait_for(agent.registered.wait(), 30)
        yield Site(inside, runtime)
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.slow
@pytest.mark.parametrize("words", list(ERRORS))
@pytest.mark.parametrize("step", ["start", "prepare"])
async def test_what_a_start_meets_is_on_the_pod_and_the_pod_can_be_deleted(tmp_path: Path, step: str, words: str) -> None:
    async with node(tmp_path) as site:
        site.runtime.fails[step] = ERRORS[words]
        await site.pod(incoming=step == "prepare")
        said = await site.says(reasons.START_FAILED, words)
        assert "/data" not in said["message"], "paths of the node's machine are nobody's business"
        pod = await site.find()
        assert pod is not None and pod["status"]["phase"] == "Pending"
        assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reasons.START_FAILED
        await site.delete()
        await site.is_gone()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["start", "prepare"])
async def test_what_goes_away_by_itself_is_over_as_soon_as_it_does(tmp_path: Path, step: str) -> None:
    async with node(tmp_path) as site:
        site.runtime.fails[step] = ERRORS["No space left on device"]
        await site.pod(incoming=step == "prepare")
        await site.says(reasons.START_FAILED, "No space left")
        site.runtime.fails.clear()

        async def well() -> bool:
            found = await site.report()
            return found.get("state") == ("Incoming" if step == "prepare" else "Running") and not found.get("reason")

        await eventually(well, patience=30)


@pytest.mark.slow
async def test_what_cannot_be_run_here_fails_for_good(tmp_path: Path) -> None:
    async with node(tmp_path) as site:
        site.runtime.fails["start"] = Refused(reasons.UNSUPPORTED, "domain.devices.gpus: not here")
        await site.pod()
        await site.says(reasons.UNSUPPORTED, "domain.devices.gpus")
        pod = await site.find()
        assert pod is not None and pod["status"]["phase"] == "Failed"
        assert site.runtime.reached.count("start") == 1
        await site.delete()
        await site.is_gone()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["start", "prepare"])
async def test_a_start_that_hangs_says_so_and_does_not_keep_its_pod_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(attempts, "PATIENCE", 0.1)
    monkeypatch.setattr(attempts, "WORTH_A_WORD", (1, 60))
    async with node(tmp_path) as site:
        site.runtime.hangs.add(step)
        await site.pod(incoming=step == "prepare")
        await site.says(reasons.GUEST_STARTING, "it has taken more than 1 s so far")
        await site.delete()
        await site.is_gone()


@pytest.mark.slow
async def test_starts_that_hang_keep_no_other_pod_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than the agent has workers."""
    monkeypatch.setattr(attempts, "PATIENCE", 0.1)
    async with node(tmp_path) as site:
        site.runtime.hangs.add("start")
        for number in range(20):
            await site.pod(f"hangs-{number}")

        async def all_hang() -> bool:
            return site.runtime.reached.count("start") == 20

        await eventually(all_hang, patience=30)
        site.runtime.hangs.clear()
        await site.pod("well")
        await site.runs("well")


@pytest.mark.slow
async def test_a_guest_whose_pod_is_gone_before_its_start_has_ended_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime sees a start through, whoever gives up waiting for it."""
    monkeypatch.setattr(attempts, "PATIENCE", 0.1)
    async with node(tmp_path) as site:
        site.runtime.sees_through = asyncio.Event()
        uid = await site.pod()

        async def under_way() -> bool:
            return "start" in site.runtime.reached

        await eventually(under_way)
        await site.inside.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        await site.is_gone()

        async def told() -> bool:
            return "remove" in site.runtime.reached

        await eventually(told, patience=30)
        site.runtime.sees_through.set()
        await asyncio.wait([site.runtime.starting[uid]])

        async def nobody() -> bool:
            return site.runtime.guests() == []

        await eventually(nobody)


@pytest.mark.slow
@pytest.mark.parametrize("words", list(ERRORS))
async def test_what_the_power_button_meets_does_not_keep_a_guest_from_being_switched_off(tmp_path: Path, words: str) -> None:
    async with node(tmp_path) as site:
        await site.pod()
        await site.runs()
        site.runtime.fails["shut_down"] = ERRORS[words]
        await site.delete()
        await site.is_gone()
        assert site.runtime.guests() == []


@pytest.mark.slow
@pytest.mark.parametrize("words", list(ERRORS))
async def test_what_an_end_meets_is_on_the_pod_until_it_has_ended(tmp_path: Path, words: str) -> None:
    async with node(tmp_path) as site:
        await site.pod()
        await site.runs()
        site.runtime.fails["remove"] = ERRORS[words]
        await site.delete()
        said = await site.says(reasons.ENDING_FAILED, words)
        assert said["state"] == "Running", "a guest that may still run is not said to have ended"
        site.runtime.fails.clear()
        await site.is_gone()
        assert site.runtime.guests() == []


@pytest.mark.slow
async def test_a_pod_that_is_gone_before_its_guest_has_its_guest_ended_however_often_that_fails(tmp_path: Path) -> None:
    async with node(tmp_path) as site:
        uid = await site.pod()
        await site.runs()
        site.runtime.fails["remove"] = ERRORS["No space left on device"]
        await site.inside.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        await site.is_gone()

        async def tried() -> bool:
            return site.runtime.reached.count("remove") >= 3

        await eventually(tried, patience=30)
        assert site.runtime.guests() == [uid]
        site.runtime.fails.clear()

        async def ended() -> bool:
            return site.runtime.guests() == []

        await eventually(ended, patience=30)


@pytest.mark.slow
async def test_what_a_guest_that_runs_meets_is_told_and_ends_nothing(tmp_path: Path) -> None:
    async with node(tmp_path) as site:
        site.runtime.fails["pause"] = QMPError("QEMU did not answer stop in 30 s")
        await site.pod(annotations={labels.PAUSE: "true"})
        said = await site.says(reasons.NODE_ERROR, "QEMU did not answer stop")
        assert said["state"] == "Running"
        site.runtime.fails.clear()

        async def paused() -> bool:
            found = await site.report()
            return found["state"] == "Paused" and not found.get("reason")

        await eventually(paused, patience=30)


@pytest.mark.slow
async def test_a_start_that_fails_is_not_tried_more_often_because_its_pod_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write to the pod does not decide how often its node is kept busy; who deletes it is obeyed at once."""
    monkeypatch.setattr("herder.nodes.failures.FIRST_WAIT", 3600.0)
    monkeypatch.setattr("herder.nodes.failures.LONGEST_WAIT", 3600.0)
    async with node(tmp_path) as site:
        site.runtime.fails["start"] = QMPError("no")
        await site.pod()
        await site.says(reasons.START_FAILED, "no")
        for number in range(20):
            patch = {"metadata": {"annotations": {"touched": str(number)}}}
            await site.inside.ask("PATCH", f"{PODS}/p", patch, content_type="application/merge-patch+json")
        await site.pod("other")
        await site.says(reasons.START_FAILED, "no", "other")
        assert site.runtime.reached.count("start") == 2
        await site.delete()
        await site.is_gone()


@pytest.mark.slow
async def test_an_error_that_comes_again_and_again_is_logged_whole_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herder.nodes.failures.FIRST_WAIT", 0.01)
    async with node(tmp_path) as site:
        with structlog.testing.capture_logs() as logged:
            site.runtime.fails["start"] = QMPError("no")
            await site.pod()

            async def often() -> bool:
                return site.runtime.reached.count("start") >= 6

            await eventually(often, patience=30)
        assert len([line for line in logged if line.get("exc_info")]) == 1, logged


class Stubborn(Scripted):
    """Guests that nobody asked for; one of them does not let itself be removed."""

    def __init__(self, stays: str) -> None:
        super().__init__()
        self.stays = stays

    async def remove(self, guest: str) -> None:
        if guest == self.stays:
            raise OSError(errno.EBUSY, "Device or resource busy")
        await super().remove(guest)


@pytest.mark.slow
async def test_what_cannot_be_removed_keeps_neither_the_others_nor_the_node_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "FIRST_RETRY", 0.05)
    runtime = Stubborn(stays="b")
    definition = msgspec.convert(INSTANCE, GuestDefinition)
    for name in ("a", "b", "c"):
        await runtime.start(Order(name, definition, {}))
    async with engine_inside(tmp_path) as inside:
        async with agent(inside, Scripted()):
            pass  # one that knew nothing of them: the Node is there from then on
        with structlog.testing.capture_logs() as said:
            async with agent(inside, runtime):
                assert runtime.guests() == ["b"], "the others were gone before anybody heard of the node"
                told = [(one["pod"], one["error"]) for one in said if "cannot be removed" in one["event"]]
                assert set(told) == {("b", "OSError: [Errno 16] Device or resource busy")}
                runtime.stays = ""

                async def gone() -> bool:
                    return not runtime.guests()

                await eventually(gone, patience=30)
