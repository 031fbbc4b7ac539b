"""What every guest remembers, at every instant: how long it has run never becomes less, unless it booted; no memory is used twice;
and who is suspended has nothing on any node."""

from __future__ import annotations

from collections import Counter

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.kinds import VirtualMachine
from herder.api.registry import MACHINE
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.imports import SimulatedImports
from herder.nodes.moving import MemoryNotes
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.base import Order
from herder.server.store import Change
from tests.simulation.cluster import NODES
from tests.simulation.herd.ledger import Ledger, NotedRuntime
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

# Times of the loop are floats.
EPSILON = 1e-6
STORAGE = "shared"
# A write that was given up may be done later all the same, and show what was.
CORRECTED_WITHIN = 1.0


class MemoryLedger(Ledger):
    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        # By name of the machine: how long its guest had run, and when that was looked at, where it runs on.
        self._ran: dict[str, tuple[float, float | None]] = {}
        self._words: dict[str, str] = {}
        self._used = Counter[str]()
        self.boots = Counter[str]()
        self.resumed = Counter[str]()
        simulation.server.listeners.append(self._shown)

    def booted(self, guest: str) -> None:
        self.boots[guest] += 1
        self._ran[guest] = (0.0, None)

    def used(self, guest: str, pod: str) -> None:
        self.resumed[guest] += 1
        self._used[pod] += 1
        if self._used[pod] > 1:
            self._note(f"the memory of {guest} was used {self._used[pod]} times")

    def stands_at(self, guest: str, ran: float, *, runs: bool) -> None:
        if ran < (before := self.ran(guest)) - EPSILON:
            self._note(f"{guest} had run for {before:.3f} s, and goes on from {ran:.3f} s")
        self._ran[guest] = (ran, self._simulation.loop.time() if runs else None)

    def ran(self, guest: str) -> float:
        ran, since = self._ran.get(guest, (0.0, None))
        return ran if since is None else ran + self._simulation.loop.time() - since

    def _shown(self, change: Change) -> None:
        if change.table != MACHINE.crd_name or change.kind == "DELETED":
            return
        machine = msgspec.json.decode(change.record.raw, type=VirtualMachine)
        self._words[machine.name] = (machine.status.printable_status if machine.status else None) or ""
        if self._words[machine.name] == "Suspended" and self._left(machine.name):
            self._simulation.loop.call_later(CORRECTED_WITHIN, lambda: self._still(machine.name))

    def _still(self, guest: str) -> None:
        if self._words[guest] == "Suspended" and (left := self._left(guest)):
            self._note(f"{guest} is shown as Suspended, and has {left}")

    def _left(self, guest: str) -> list[object]:
        return [*self._open.get(guest, ()), *self._pods.get(guest, ())]


class MemoryRuntime(NotedRuntime):
    """Guests run on while no agent is there, as real ones do: what is made up again has run meanwhile."""

    _ledger: MemoryLedger
    _looks_away = False

    async def start(self, order: Order) -> None:
        if order.guest not in self._guests:
            self._ledger.booted(order.definition.instance.name)
        await super().start(order)

    async def restore(self, order: Order, path: object = None) -> None:
        source, known = order.definition.memory, order.guest in self._guests
        self._names[order.guest] = order.definition.instance.name
        await super().restore(order, None)
        if source is not None and not known:
            self._ledger.used(order.definition.instance.name, source.pod)

    def adopt(self, order: Order, *, paused: bool, started_at: float | None) -> None:
        ran, self._looks_away = self._ledger.ran(order.definition.instance.name), True
        super().adopt(order, paused=paused, started_at=started_at)
        self._guests[order.guest].received(ran)
        self._looks_away = False
        self._note(order.guest)

    def _note(self, guest: str) -> None:
        if self._looks_away:
            return
        super()._note(guest)
        found = self._guests.get(guest)
        if found is not None and found.has_memory and self._machine.alive and self._machine.lives == self._life:
            self._ledger.stands_at(self._names[guest], found.ran, runs=found.executes)


def remembering_node(simulation: Simulation, name: str, ledger: MemoryLedger) -> Machine:
    async def main(machine: Machine) -> None:
        runtime = MemoryRuntime(name, machine, simulation, ledger)
        notes = simulation.notes.setdefault(name, MemoryNotes())
        imports, link = SimulatedImports(machine.world, runtime), simulation.switchboard.link(name)
        parts = Parts(NoVolumes(), imports=imports, plain=PlainPods(machine.world), notes=notes, link=link)
        settings = NodeSettings(name=name, storage=STORAGE)
        await NodeAgent(simulation.client(machine, NODES), machine.world, settings, runtime, parts, CollectorRegistry()).run()

    return simulation.machine(name, main)
