"""Nodes whose guests and notes outlive their agents, as those of real nodes do."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from herder.api import reasons
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.moving import MemoryNotes, Switchboard
from herder.nodes.moving.notes import Coming, Leaving
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.nodes.runtimes.simulated.moving import Move
from tests.simulation.machine import Machine
from tests.simulation.moving.ledger import Ledger
from tests.simulation.moving.points import Points
from tests.simulation.simulation import Simulation

NODES = "nodes"
POWERED_OFF = 4.0


class Host(SimulatedRuntime):
    """The machine below the agent: guests run on without it, and are there when it comes back."""

    def __init__(self, name: str, simulation: Simulation, ledger: Ledger, points: Points) -> None:
        self.machine: Machine
        self.notes = DurableNotes(self, points)
        self._ledger = ledger
        self._points = points
        world = simulation.machine(f"{name}/host", _nothing).world
        super().__init__(name, world, simulation.guest_network)

    @property
    def name(self) -> str:
        return self._node

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        self.detach()

    def detach(self) -> None:
        """The agent is dead: nobody is told anything."""
        self._changed = lambda guest: None

    def adopt(self, order: Order, *, paused: bool, started_at: float | None) -> None:
        """Nothing is made up: what the machine does not know is lost."""

    # What happens to it.

    def kill(self, uid: str) -> None:
        """The guest's process dies."""
        guest, move = self._guests.get(uid), self._moves.find(uid)
        if move is not None and move.copy.mode == "PostCopy":
            self._moves.break_off(uid, "the source has ended")
        if guest is not None and not guest.ended:
            guest.end("Crashed", reasons.GUEST_CRASHED, "killed")

    def power_off(self) -> None:
        """The whole machine: no guest of it is alive when it is back, and what was on its disk is still there."""
        self.machine.crash("powered off", POWERED_OFF)
        for uid in self.guests():
            self.kill(uid)

    def moves_under_way(self) -> list[str]:
        return [move.guest.order.guest for move in self._moves.all()]

    def cut_copies(self) -> None:
        for move in self._moves.all():
            self._moves.break_off(move.guest.order.guest, "the connection broke")

    # What it does, with the steps at which something may happen.

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        self._points.reach(f"{self.name} before prepare", self.machine)
        address = await super().prepare_incoming(order, migration, settings)
        self._points.reach(f"{self.name} after prepare", self.machine)
        return address

    async def migrate_out(self, guest: str, migration: str, address: str, settings: PolicySettings) -> None:
        self._points.reach(f"{self.name} before migrate_out", self.machine)
        await super().migrate_out(guest, migration, address, settings)
        self._points.reach(f"{self.name} after migrate_out", self.machine)

    async def start_post_copy(self, guest: str) -> None:
        self._points.reach(f"{self.name} before post-copy", self.machine)
        await super().start_post_copy(guest)
        self._points.reach(f"{self.name} after post-copy", self.machine)

    async def pause(self, guest: str) -> None:
        self._points.reach(f"{self.name} before pause", self.machine)
        await super().pause(guest)
        self._points.reach(f"{self.name} after pause", self.machine)

    async def cancel(self, guest: str) -> None:
        self._points.reach(f"{self.name} before cancel", self.machine)
        await super().cancel(guest)
        self._points.reach(f"{self.name} after cancel", self.machine)

    async def resume(self, guest: str) -> None:
        self._points.reach(f"{self.name} before resume", self.machine)
        await super().resume(guest)
        self._points.reach(f"{self.name} after resume", self.machine)

    def _sent(self, move: Move) -> None:
        super()._sent(move)
        self._note(move.guest.order.guest)
        self._points.reach(f"{self.name} all sent")

    def _completed(self, move: Move) -> None:
        super()._completed(move)
        self._points.reach(f"{self.name} completed")

    def _guest_changed(self, guest: str) -> None:
        self._note(guest)
        super()._guest_changed(guest)

    async def remove(self, guest: str) -> None:
        if found := self._guests.get(guest):
            self._ledger.stands(found.order.definition.instance.name, f"{self.name}/{guest}", found.ran)
        await super().remove(guest)

    def _note(self, uid: str) -> None:
        guest = self._guests.get(uid)
        if guest is not None:
            tell = self._ledger.runs if guest.executes else self._ledger.stands
            tell(guest.order.definition.instance.name, f"{self.name}/{uid}", guest.ran)


class DurableNotes(MemoryNotes):
    """A disk: what is written is there, whoever dies."""

    def __init__(self, host: Host, points: Points) -> None:
        super().__init__()
        self._host = host
        self._points = points

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        what = (note.outcome or "begun") if isinstance(note, Leaving) else "granted" if note.granted else "coming"
        self._points.reach(f"{self._host.name} before note {what}", self._host.machine)
        await super().write(guest, note)
        self._points.reach(f"{self._host.name} after note {what}", self._host.machine)


def node(simulation: Simulation, host: Host, board: Switchboard) -> Machine:
    async def main(machine: Machine) -> None:
        def dead() -> None:
            host.detach()
            board.unplug(host.name)

        machine.on_death = dead
        parts = Parts(NoVolumes(), plain=PlainPods(machine.world), notes=host.notes, link=board.link(host.name))
        settings = NodeSettings(name=host.name, renew_every=60.0)
        client = simulation.client(machine, f"{NODES}-{host.name}")
        await NodeAgent(client, machine.world, settings, host, parts, CollectorRegistry()).run()

    host.machine = simulation.machine(host.name, main)
    return host.machine


async def _nothing(_: Machine) -> None:
    pass
