"""The usual machines: nodes with their agents, and processes that run controllers, of which one leads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.fenced import FencedTransport
from herder.kube.kit import Kit, Start, run_controllers
from herder.kube.leases import LeaderElection, Settings
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.simulated import SimulatedRuntime
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

CONTROLLERS = "controllers"
NODES = "nodes"
RENEW_EVERY = NodeSettings(name="").renew_every
# Renewals are a good part of what a simulation has to do, and a leader that renews less often leads as well.
UNHURRIED = Settings(retry_period=5.0)


def node(simulation: Simulation, name: str, renew_every: float = RENEW_EVERY) -> Machine:
    """A node with its agent; killed, both are gone with all that ran there, until it is started again."""

    async def main(machine: Machine) -> None:
        settings = NodeSettings(name=name, renew_every=renew_every)
        runtime = SimulatedRuntime(name, machine.world, simulation.guest_network)
        parts = Parts(NoVolumes(), plain=PlainPods(machine.world))
        await NodeAgent(simulation.client(machine, NODES), machine.world, settings, runtime, parts, CollectorRegistry()).run()

    return simulation.machine(name, main)


def controllers(simulation: Simulation, name: str, starts: Sequence[Start], settings: Settings = UNHURRIED) -> Machine:
    """A process as `herder controllers` is one: it stands by, and works while it leads."""

    async def main(machine: Machine) -> None:
        transport = simulation.transport(machine, CONTROLLERS)
        registry = CollectorRegistry()
        identity = f"{machine.name}-{machine.lives}"
        election = LeaderElection(Client(transport, CONTROLLERS), machine.world, identity, settings, registry=registry)

        async def lead() -> None:
            client = Client(FencedTransport(transport, election.leads), CONTROLLERS)
            recorder = Recorder(client, machine.world, "example.herder.dev/controllers", registry=registry)
            # A new term knows nothing of the last one.
            kit = Kit(client, Caches(client, machine.world), recorder, machine.world, registry)
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.run())
                group.create_task(run_controllers(kit, starts))

        await election.run(lead)

    return simulation.machine(name, main)
