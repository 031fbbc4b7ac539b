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
from herder.nodes.agent import NodeAgent
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
CONTROLLERS = "controllers"
NODES = "nodes"


def node(simulation: Simulation, name: str) -> Machine:
    """A node; killed, its agent is gone until it is started again."""

    async def main(machine: Machine) -> None:
        await NodeAgent(simulation.client(machine, NODES), machine.world, name, "simulated://1", CAPACITY).run()

    return simulation.machine(name, main)


def controllers(simulation: Simulation, name: str, starts: Sequence[Start], settings: Settings | None = None) -> Machine:
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
