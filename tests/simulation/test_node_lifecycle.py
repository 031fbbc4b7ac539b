"""Nodes that fall silent, at the mercy of every fault; and what nodes that are cut off for long do to machines."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.world import timestamp
from herder.controllers.node_lifecycle import NODE_LIFECYCLE
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.errors import KubeError
from herder.kube.resources import INSTANCES, NODES, PODS, Key
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.herd import scenario
from tests.simulation.herd.ledger import Ledger, noted_node
from tests.simulation.matrix import Scenario, matrix_for
from tests.simulation.simulation import Simulation, simulate

Json = dict[str, Any]
GHOST, WELL = Key("", "ghost"), Key("", "node-1")
LOST_TAINT = "node.kubernetes.io/unreachable"
VOUCHED = {"key": labels.OUT_OF_SERVICE_TAINT, "effect": "NoExecute"}


# --- every fault at every write --------------------------------------------------------------------------------------------------


async def make_a_node_that_falls_silent(client: Client) -> None:
    """It says once that it is well, and never again."""
    await scenario.nodes_are_ready(client)
    await client.create(NODES, {"metadata": {"name": GHOST.name}})
    for name, seconds in (("hasty", 20), ("patient", None)):
        bears: Json = {"key": LOST_TAINT, "operator": "Exists", "effect": "NoExecute"}
        bears |= {"tolerationSeconds": seconds} if seconds is not None else {}
        spec = {"nodeName": GHOST.name, "containers": [{"name": "c", "image": "i"}], "tolerations": [bears]}
        await client.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": timestamp(0)}]
        patch = {"status": {"phase": "Running", "conditions": conditions}}
        await client.patch(PODS, Key("default", name), patch, subresource="status", content_type=STRATEGIC_PATCH)
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp(0)}]}}
    await client.patch(NODES, GHOST, patch, subresource="status", content_type=STRATEGIC_PATCH)


async def cordon(client: Client) -> None:
    await client.patch(NODES, WELL, {"spec": {"unschedulable": True}})


async def vouch(client: Client) -> None:
    await client.patch(NODES, GHOST, {"spec": {"taints": [VOUCHED]}}, content_type=STRATEGIC_PATCH)


async def take_away(client: Client) -> None:
    spec = {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}
    await client.create(PODS, {"metadata": {"name": "orphan", "namespace": "default"}, "spec": spec})
    await client.patch(NODES, WELL, {"spec": {"unschedulable": None}})


def lost(left: dict[str, bytes]) -> str:
    node = msgspec.json.decode(left["nodes ghost"])
    taints = {(one["key"], one["effect"]) for one in node["spec"].get("taints", ())}
    wanted = {(LOST_TAINT, "NoSchedule"), (LOST_TAINT, "NoExecute"), (VOUCHED["key"], "NoExecute")}
    pods = [name for name in left if name.startswith("pods ")]
    well = msgspec.json.decode(left["nodes node-1"])["spec"].get("taints", [])
    return "" if (taints, pods, well) == (wanted, [], []) else f"found {taints}, {pods}, {well}"


SILENCE = Scenario(
    "a node falls silent",
    kinds=(),
    controllers=NODE_LIFECYCLE,
    steps=(make_a_node_that_falls_silent, cordon, vouch, take_away),
    expect=lost,
    nodes=2,
    # A leader that is cut off, and then the whole quarantine of another that knows nothing yet.
    quiet=150.0,
)
test_the_node_lifecycle_survives_every_fault = matrix_for(SILENCE, every=2)


# --- machines on nodes that are cut off ------------------------------------------------------------------------------------------

NAMES = ("node-1", "node-2", "node-3")


class World:
    """Three nodes, one machine, and who runs where."""

    def __init__(self, simulation: Simulation, ledger: Ledger) -> None:
        self.simulation, self.ledger = simulation, ledger
        self.person = simulation.client()

    async def home(self) -> str:
        """Where the machine runs."""

        async def look() -> str:
            try:
                instance = await self.person.get(INSTANCES, scenario.KEY)
            except KubeError:
                return ""
            return (instance.status.node_name or "") if instance.status and instance.status.phase == "Running" else ""

        return await eventually(look, patience=300.0)

    async def pods(self) -> list[tuple[str, bool]]:
        return [(pod.spec.node_name, pod.being_deleted) for pod in (await self.person.list(PODS)).items]

    async def taints(self, node: str) -> list[tuple[str, str]]:
        found = await self.person.get(NODES, Key("", node))
        return [(one.key.removeprefix("node.kubernetes.io/"), one.effect) for one in found.spec.taints]

    def cut(self, *nodes: str, seconds: float) -> None:
        wire = self.simulation.wire("nodes")
        for node in nodes:
            wire.cut_until[node] = self.simulation.loop.time() + seconds
        wire.break_watches()


def lived(seed: int, story: Callable[[World], Awaitable[None]]) -> None:
    async def main(simulation: Simulation) -> list[str]:
        ledger = Ledger(simulation)
        await simulation.started()
        everything = scenario.STARTED_AND_RESTARTED.controllers
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", everything) for letter in "ab"]
        await simulation.started(*processes, *(noted_node(simulation, name, ledger) for name in NAMES))
        world = World(simulation, ledger)
        await scenario.nodes_are_ready(world.person)
        await scenario.make("Always", simulated={"boot": "2s", "shutdown": "1s"})(world.person)
        await story(world)
        return [*ledger.wrong, *simulation.trace.errors()]

    assert simulate(seed, main, scenario.STARTED_AND_RESTARTED.kinds, traced=False) == []


@pytest.mark.slow
def test_a_machine_on_a_node_that_is_cut_off_waits_for_it_or_for_its_fencing(seed: int) -> None:
    async def story(world: World) -> None:
        first = await world.home()
        world.cut(first, seconds=10_000.0)
        await asyncio.sleep(100.0)
        assert await world.taints(first) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
        assert await world.pods() == [(first, False)]
        await asyncio.sleep(300.0)
        # Told to leave. But nobody can know whether it has, so it runs nowhere else.
        assert await world.pods() == [(first, True)]
        await asyncio.sleep(3600.0)
        assert await world.pods() == [(first, True)]
        assert world.ledger.started == 1
        # Off, for sure.
        world.simulation.machines[first].restarts = False
        world.simulation.machines[first].crash("switched off")
        world.ledger.forget(first)
        await world.person.patch(NODES, Key("", first), {"spec": {"taints": [VOUCHED]}}, content_type=STRATEGIC_PATCH)
        await asyncio.sleep(60.0)
        assert await world.home() != first

    lived(seed, story)


@pytest.mark.slow
def test_a_node_that_is_back_in_time_keeps_its_machine(seed: int) -> None:
    async def story(world: World) -> None:
        first = await world.home()
        world.cut(first, seconds=200.0)
        await asyncio.sleep(100.0)
        assert ("unreachable", "NoExecute") in await world.taints(first)
        await asyncio.sleep(160.0)
        assert await world.taints(first) == []
        assert await world.home() == first
        assert await world.pods() == [(first, False)]
        assert world.ledger.started == 1

    lived(seed, story)


@pytest.mark.slow
def test_when_all_nodes_are_away_nobody_is_evicted(seed: int) -> None:
    async def story(world: World) -> None:
        first = await world.home()
        world.cut(*NAMES, seconds=3600.0)
        await asyncio.sleep(1800.0)
        assert [await world.taints(name) for name in NAMES] == [[("unreachable", "NoSchedule")]] * 3
        assert await world.pods() == [(first, False)]
        await asyncio.sleep(1900.0)
        assert [await world.taints(name) for name in NAMES] == [[], [], []]
        assert await world.home() == first
        assert world.ledger.started == 1

    lived(seed, story)


def test_a_controller_that_was_away_itself_takes_nobody_for_lost(seed: int) -> None:
    async def story(world: World) -> None:
        first = await world.home()
        for letter in "ab":
            machine = world.simulation.machines[f"{CONTROLLERS}-{letter}"]
            machine.crash(restart_after=600.0)
        await asyncio.sleep(900.0)
        assert [await world.taints(name) for name in NAMES] == [[], [], []]
        assert await world.home() == first
        assert world.ledger.started == 1

    lived(seed, story)


# --- Nodes that somebody deletes -------------------------------------------------------------------------------------------------


async def _is_gone(world: World, node: str, uid: str) -> bool:
    found = await world.person.find(NODES, Key("", node))
    return found is None or found.uid != uid


@pytest.mark.slow
def test_a_machine_whose_node_is_deleted_while_it_lives_is_ended_there_before_it_starts_elsewhere(seed: int) -> None:
    """The agent is killed now and then; the ledger counts copies at every instant."""

    async def story(world: World) -> None:
        dice = random.Random(f"{seed}/deleted nodes")
        for _ in range(6):
            home = await world.home()
            uid = (await world.person.get(NODES, Key("", home))).uid
            await world.person.delete(NODES, Key("", home))
            if dice.random() < 0.5:
                await asyncio.sleep(dice.uniform(0.0, 2.0))
                world.simulation.machines[home].crash(restart_after=dice.uniform(0.1, 20.0))
                world.ledger.forget(home)
            await eventually(lambda home=home, uid=uid: _is_gone(world, home, uid), patience=60.0)
            await asyncio.sleep(dice.uniform(0.0, 30.0))
        await world.home()
        assert world.ledger.started > 6

    lived(seed, story)


def test_a_silent_node_that_is_deleted_goes_and_its_machine_starts_elsewhere(seed: int) -> None:
    async def story(world: World) -> None:
        first = await world.home()
        uid = (await world.person.get(NODES, Key("", first))).uid
        world.simulation.machines[first].restarts = False
        world.simulation.machines[first].crash("switched off")
        world.ledger.forget(first)
        await world.person.delete(NODES, Key("", first))
        assert not await _is_gone(world, first, uid), "nobody knows yet that it is silent"
        await eventually(lambda: _is_gone(world, first, uid), patience=120.0)
        assert await world.home() != first

    lived(seed, story)
