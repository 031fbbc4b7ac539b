"""Who runs where, at every instant: of each guest there is at most one copy, and of each machine one pod that may run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.core import Pod
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.server.store import Change
from tests.simulation.cluster import NODES
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

# A guest in one of these has its memory and its disks open.
OPEN = ("Running", "Paused")
FINISHED = ("Succeeded", "Failed")
SWITCHED_OFF_AFTER = 5.0


class Ledger:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        # By name of the machine: where its guest runs, and in which pod.
        self._open: dict[str, dict[tuple[str, str], None]] = {}
        self._pods: dict[str, dict[str, None]] = {}
        self.wrong: list[str] = []
        self.started = 0
        simulation.server.listeners.append(self._stored)

    def opened(self, guest: str, node: str, pod: str) -> None:
        copies = self._open.setdefault(guest, {})
        if (node, pod) in copies:
            return
        self.started += 1
        copies[node, pod] = None
        if len(copies) > 1:
            self._note(f"{guest} runs more than once: {list(copies)}")

    def closed(self, guest: str, node: str, pod: str) -> None:
        self._open.get(guest, {}).pop((node, pod), None)

    def forget(self, node: str) -> None:
        """It is certain that nothing runs there: it was fenced, or it was started again and looks what it finds."""
        for copies in self._open.values():
            for one in [one for one in copies if one[0] == node]:
                del copies[one]

    def _stored(self, change: Change) -> None:
        if change.table != "pods":
            return
        pod = msgspec.json.decode(change.record.raw, type=Pod)
        machine = pod.labels.get(labels.MACHINE_NAME)
        if machine is None:
            return
        pods = self._pods.setdefault(machine, {})
        # One that is bound nowhere runs nowhere: a request that comes too late may still make one, and it is cleared away.
        if change.kind == "DELETED" or pod.status.phase in FINISHED or not pod.spec.node_name:
            pods.pop(pod.uid, None)
        else:
            pods[pod.uid] = None
        if len(pods) > 1:
            self._note(f"{machine} has more than one pod that may run: {list(pods)}")

    def _note(self, what: str) -> None:
        self.wrong.append(f"at {self._simulation.loop.time():.3f} s: {what}")
        self._simulation.trace.add("ledger", what)


class NotedRuntime(SimulatedRuntime):
    """Every guest of it is in the ledger while it runs. One whose agent dies runs on."""

    def __init__(self, node: str, machine: Machine, simulation: Simulation, ledger: Ledger) -> None:
        super().__init__(node, machine.world, simulation.guest_network)
        self._ledger = ledger
        self._machine = machine
        self._life = machine.lives
        self._names: dict[str, str] = {}
        ledger.forget(node)

    async def open(self, changed: Callable[[str], None]) -> None:
        def noted(guest: str) -> None:
            self._note(guest)
            changed(guest)

        await super().open(noted)

    async def start(self, order: Order) -> None:
        self._names[order.guest] = order.definition.instance.name
        await super().start(order)

    def adopt(self, order: Order, *, paused: bool, started_at: float | None) -> None:
        self._names[order.guest] = order.definition.instance.name
        super().adopt(order, paused=paused, started_at=started_at)

    async def remove(self, guest: str) -> None:
        if (status := self.status(guest)) is not None and status.state in OPEN:
            # As a process takes a while to be gone.
            await asyncio.sleep(SWITCHED_OFF_AFTER)
        await super().remove(guest)
        if guest in self._names:
            self._ledger.closed(self._names[guest], self._node, guest)

    def _note(self, guest: str) -> None:
        """Timers of an agent that is dead still ring; what they say is nobody's business."""
        if not self._machine.alive or self._machine.lives != self._life:
            return
        status = self.status(guest)
        opened = status is not None and status.state in OPEN
        (self._ledger.opened if opened else self._ledger.closed)(self._names[guest], self._node, guest)


def noted_node(simulation: Simulation, name: str, ledger: Ledger) -> Machine:
    async def main(machine: Machine) -> None:
        runtime = NotedRuntime(name, machine, simulation, ledger)
        parts = Parts(NoVolumes(), plain=PlainPods(machine.world))
        client = simulation.client(machine, NODES)
        await NodeAgent(client, machine.world, NodeSettings(name=name), runtime, parts, CollectorRegistry()).run()

    return simulation.machine(name, main)
