"""Guests that their nodes know nothing of any more: lost at every step of a start and of a migration, on either node or both, with
or without what the agents wrote down; and after a restore. In the end each machine runs again, by its run strategy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from herder.kube.client import Client
from herder.kube.resources import MACHINES
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.moving import MemoryNotes
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.server.backup import FORMAT, Backup, Header, prepare, restore
from herder.server.store import Change, Store
from tests.simulation.cluster import CONTROLLERS, NODES, controllers
from tests.simulation.herd import scenario
from tests.simulation.machine import Machine
from tests.simulation.matrix import Step
from tests.simulation.simulation import Simulation, simulate

NAMES = ("node-1", "node-2")
WRITES = 60
# Longer than anything is waited for: the next start after failures, a target that does not come about.
CALM = 1200.0
MOVED = scenario.MOVED


class Forgetful(SimulatedRuntime):
    """As a machine that was switched off: what it does not run it cannot make up."""

    def adopt(self, order: Order, *, paused: bool, started_at: float | None) -> None:
        pass


class World:
    def __init__(self, simulation: Simulation, *, keeps_notes: bool) -> None:
        self.simulation = simulation
        self.person = simulation.client()
        self.runtimes: dict[str, Forgetful] = {}
        self._keeps_notes = keeps_notes

    async def begin(self) -> None:
        await self.simulation.started()
        processes = [controllers(self.simulation, f"{CONTROLLERS}-{letter}", MOVED.controllers) for letter in "ab"]
        await self.simulation.started(*processes, *(self._node(name) for name in NAMES))
        await scenario.nodes_are_ready(self.person)

    def _node(self, name: str) -> Machine:
        async def main(machine: Machine) -> None:
            simulation = self.simulation
            self.runtimes[name] = Forgetful(name, machine.world, simulation.guest_network)
            notes = simulation.notes.setdefault(name, MemoryNotes()) if self._keeps_notes else MemoryNotes()
            parts = Parts(NoVolumes(), plain=PlainPods(machine.world), notes=notes, link=simulation.switchboard.link(name))
            client, settings = simulation.client(machine, NODES), NodeSettings(name=name)
            await NodeAgent(client, machine.world, settings, self.runtimes[name], parts, CollectorRegistry()).run()

        return self.simulation.machine(name, main)

    async def do(self, *steps: Step) -> None:
        for step in steps:
            await step(self.person)
            await self.simulation.at_rest()

    def lose_at(self, write: int, victims: Sequence[str]) -> None:
        """All guests of these nodes, when so many changes have been stored from now on."""
        left = [write]

        def stored(change: Change) -> None:
            if change.table in ("pods", "virtualmachineinstances.kubevirt.io", "virtualmachineinstancemigrations.kubevirt.io"):
                left[0] -= 1
                if left[0] == 0:
                    for name in victims:
                        self.simulation.loop.call_soon(self.simulation.machines[name].crash)

        self.simulation.server.listeners.append(stored)

    def running(self) -> list[str]:
        """Guests that really run, and where."""
        found = [(name, runtime.status(uid)) for name, runtime in self.runtimes.items() for uid in runtime.guests()]
        return [name for name, status in found if status is not None and status.state == "Running"]

    async def wrong(self, word: str = "Running", guests: int = 1) -> list[str]:
        machine = await self.person.get(MACHINES, scenario.KEY)
        assert machine.status is not None
        found = self.running()
        shown = (machine.status.printable_status, machine.status.ready, len(found))
        wrong = [] if shown == (word, guests == 1, guests) else [f"should be {word} with {guests} guests, but is {shown}: {found}"]
        return wrong + self.simulation.trace.errors()


def problems(seed: int, write: int, victims: Sequence[str], *, keeps_notes: bool) -> list[str]:
    """The guest starts on node-1, and is moved to node-2."""

    async def main(simulation: Simulation) -> list[str]:
        world = World(simulation, keeps_notes=keeps_notes)
        await world.begin()
        world.lose_at(write, victims)
        await world.do(scenario.make("Always"), scenario.migrate("there"))
        await asyncio.sleep(CALM)
        return await world.wrong()

    return [f"lost at write {write}: {one}" for one in simulate(seed, main, MOVED.kinds, traced=False)]


every_loss = pytest.mark.parametrize("keeps_notes", [True, False], ids=["notes kept", "notes lost"])
every_victim = pytest.mark.parametrize("victims", [("node-1",), ("node-2",), NAMES], ids="+".join)


@pytest.mark.slow
@every_loss
@every_victim
def test_guests_that_are_lost_while_they_are_started_and_moved_are_started_again(
    victims: Sequence[str], keeps_notes: bool, first_seed: int
) -> None:
    """At some writes; at which is decided by the seed."""
    writes = range(1 + first_seed % 10, WRITES, 10)
    found = [one for write in writes for one in problems(first_seed, write, victims, keeps_notes=keeps_notes)]
    assert not found, "\n".join(found[:10])


# Both nodes, and what they wrote down, are lost together at every tenth write, above.
EVERY_WAY = [(victims, keeps_notes) for victims in (("node-1",), ("node-2",)) for keeps_notes in (True, False)]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(EVERY_WAY)))
def test_guests_that_are_lost_at_every_write_are_started_again(first: int, first_seed: int) -> None:
    """Every write, each in one of the four ways; in which is decided by the seed: four seeds are all of them."""
    found: list[str] = []
    for write in range(1 + first, WRITES, len(EVERY_WAY)):
        victims, keeps_notes = EVERY_WAY[(write // len(EVERY_WAY) + first + first_seed) % len(EVERY_WAY)]
        found += problems(first_seed, write, victims, keeps_notes=keeps_notes)
    assert not found, "\n".join(found[:10])


# --- backup and restore ----------------------------------------------------------------------------------------------------------


def back_up(simulation: Simulation) -> Backup:
    store = _store(simulation)
    objects = [(kind, record.raw) for kind in sorted(store.kinds()) for record in store.scan(kind)]
    return Backup(Header(FORMAT, "", store.identity, store.revision), objects, {})


async def put_back(simulation: Simulation, backup: Backup) -> None:
    """Kinds and first objects are as they were: it is the same program."""
    await restore(_store(simulation), backup, prepare(backup))


def _store(simulation: Simulation) -> Store:
    assert simulation.server.running is not None
    return simulation.server.running.engine.store


STRATEGIES = [("Always", "Running", 1), ("RerunOnFailure", "Running", 1), ("Manual", "Stopped", 0), ("Once", "Stopped", 0)]


async def start_by_hand(client: Client) -> None:
    await client.patch(MACHINES, scenario.KEY, {"metadata": {"annotations": {"herder.dev/start-requested": "now"}}})


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "word", "guests"), STRATEGIES, ids=lambda one: str(one))
@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_machine_that_is_restored_runs_again_as_its_run_strategy_says(
    strategy: str, word: str, guests: int, moves: int, seed: int
) -> None:
    """Restored with all nodes freshly started: no guest is left of what the backup shows as running."""

    async def main(simulation: Simulation) -> list[str]:
        world = World(simulation, keeps_notes=False)
        await world.begin()
        await world.do(scenario.make(strategy), *((start_by_hand,) if strategy == "Manual" else ()))
        await world.do(*(scenario.migrate(f"move-{number}") for number in range(moves)))
        assert world.running(), "it has to run before"
        backup = back_up(simulation)
        await world.do(scenario.delete())
        for name in NAMES:
            simulation.machines[name].crash("moved to another folder")
        await put_back(simulation, backup)
        await asyncio.sleep(CALM)
        return await world.wrong(word, guests)

    assert simulate(seed, main, MOVED.kinds, traced=False) == []
