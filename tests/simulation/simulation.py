"""A cluster that a seed decides: machines, one API server, and what happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from herder.api.registry import KindInfo
from herder.kube.client import Client
from herder.nodes.moving import MemoryNotes, Switchboard
from herder.nodes.runtimes.simulated import Network
from herder.server.request import ENGINE, User
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine, Main, owned_tasks
from tests.simulation.server import ApiServer
from tests.simulation.trace import Trace
from tests.simulation.transport import SimulatedTransport
from tests.simulation.wire import Wire
from tests.simulation.worlds import SimulatedWorld

T = TypeVar("T")
SERVER = "api"
PERSON = "person"
# Longer than a lease, a restart and the first tries of whoever failed together.
QUIET = 60.0
PATIENCE = 3600.0
READY_PATIENCE = 10.0


class Wedged(AssertionError):
    """The world does not come to rest."""


class Simulation:
    def __init__(
        self, loop: VirtualLoop, seed: int, kinds: Sequence[KindInfo] = (), *, traced: bool = True, latency: bool = True
    ) -> None:
        self.loop = loop
        self.seed = seed
        self.trace = Trace(loop.time)
        self.machines: dict[str, Machine] = {}
        self.wires: dict[str, Wire] = {}
        self.server = ApiServer(kinds)
        # Over which the nodes copy guests to each other.
        self.guest_network = Network()
        # How their agents speak to each other meanwhile, and what each has written down: that outlives them.
        self.switchboard = Switchboard("simulation")
        self.notes: dict[str, MemoryNotes] = {}
        self._traced = self.trace if traced else None
        self._network = SimulatedWorld(loop, seed, "network")
        self._latency = latency
        self.api = self.machine(SERVER, self.server.main)
        self._person = self.machine(PERSON, _for_ever)
        self._person.start()

    def machine(self, name: str, main: Main) -> Machine:
        made = Machine(self.loop, SimulatedWorld(self.loop, self.seed, name), self.trace, name, main)
        self.machines[name] = made
        return made

    def wire(self, role: str) -> Wire:
        return self.wires.setdefault(role, Wire(role))

    def transport(self, machine: Machine, role: str = "", user: User = ENGINE) -> SimulatedTransport:
        latency = self._travel_time if self._latency else None
        return SimulatedTransport(machine, self.server, self.api, self.wire(role or machine.name), self._traced, user, latency)

    def client(self, machine: Machine | None = None, role: str = "", user: User = ENGINE) -> Client:
        """Without a machine: that of a person, whom no fault befalls."""
        machine = machine or self._person
        return Client(self.transport(machine, role, user), role or machine.name)

    def _travel_time(self) -> float:
        return 0.0005 + 0.002 * self._network.random()

    async def started(self, *machines: Machine) -> None:
        """The server first, then the others."""
        self.api.start()
        try:
            async with asyncio.timeout(READY_PATIENCE):
                await self.client().wait_until_ready()
        except TimeoutError:
            raise Wedged(f"the API server does not start:\n{self.trace.tail(10)}") from None
        for machine in machines:
            machine.start()

    async def at_rest(self, quiet: float = QUIET, patience: float = PATIENCE) -> None:
        """Until nothing but leases and events has been written for a while."""
        begun = self.loop.time()
        while (wait := max(self.server.changed_at, begun) + quiet - self.loop.time()) > 0:
            if self.loop.time() - begun > patience:
                raise Wedged(f"still writing after {patience:.0f} s; the last of it:\n{self.trace.tail(30)}")
            await asyncio.sleep(wait)

    def fell_through(self, context: dict[str, Any]) -> None:
        """An error that nobody caught. Those of tasks that nobody waits for come when the garbage is collected: at any time."""
        if "handle" in context:
            self.trace.add("log", f"error {context['message']}: {context.get('exception')!r}")

    def end(self) -> None:
        """What is done while all this is cleared away is no part of it any more."""
        self.trace.end()
        for machine in self.machines.values():
            machine.restarts = False
            machine.crash()


async def _for_ever(_: Machine) -> None:
    await asyncio.Event().wait()


def simulate(seed: int, main: Callable[[Simulation], Awaitable[T]], kinds: Sequence[KindInfo] = (), **settings: Any) -> T:
    """Runs it to its end, on a loop of its own. Whoever wants the trace takes it from the simulation."""
    loop = VirtualLoop()
    loop.set_task_factory(owned_tasks)
    try:
        return loop.run_until_complete(_run(loop, seed, main, kinds, settings))
    finally:
        _close(loop)


async def _run(
    loop: VirtualLoop, seed: int, main: Callable[[Simulation], Awaitable[T]], kinds: Sequence[KindInfo], settings: dict[str, Any]
) -> T:
    simulation = Simulation(loop, seed, kinds, **settings)
    loop.set_exception_handler(lambda _, context: simulation.fell_through(context))
    with simulation.trace.logs():
        try:
            return await main(simulation)
        finally:
            simulation.end()


def _close(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
