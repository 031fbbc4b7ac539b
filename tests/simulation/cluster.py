"""The usual machines: nodes with their agents, and processes that run controllers, of which one leads."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from herder.app.controllers_process import Process, Settings
from herder.kube.kit import Start
from herder.kube.leases import Settings as Lease
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.imports import SimulatedImports
from herder.nodes.moving import MemoryNotes
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.simulated import SimulatedRuntime
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

CONTROLLERS = "controllers"
NODES = "nodes"
RENEW_EVERY = NodeSettings(name="").renew_every
# Renewals are a good part of what a simulation has to do, and a leader that renews less often leads as well.
UNHURRIED = Lease(retry_period=5.0)


def node(simulation: Simulation, name: str, renew_every: float = RENEW_EVERY, storage: str = "") -> Machine:
    """A node with its agent; killed, both are gone with all that ran there, until it is started again. `storage`: nodes that say
    the same see the same volumes, and fill them."""

    async def main(machine: Machine) -> None:
        settings = NodeSettings(name=name, renew_every=renew_every, storage=storage)
        runtime = SimulatedRuntime(name, machine.world, simulation.guest_network)
        notes = simulation.notes.setdefault(name, MemoryNotes())
        imports = SimulatedImports(machine.world, runtime) if storage else None
        plain, link = PlainPods(machine.world), simulation.switchboard.link(name)
        parts = Parts(NoVolumes(), imports=imports, plain=plain, notes=notes, link=link)
        await NodeAgent(simulation.client(machine, NODES), machine.world, settings, runtime, parts, CollectorRegistry()).run()

    return simulation.machine(name, main)


def controllers(simulation: Simulation, name: str, starts: Sequence[Start], lease: Lease = UNHURRIED) -> Machine:
    """A process as `herder controllers` starts it: it stands by, and works while it leads."""

    async def main(machine: Machine) -> None:
        settings = Settings(lease=lease, identity=f"{machine.name}-{machine.lives}")
        client = simulation.client(machine, CONTROLLERS)
        await Process(client, settings, starts, machine.world, lambda: machine.crash("stuck")).run(None)

    return simulation.machine(name, main)
