"""The usual machines: nodes with their agents."""

from __future__ import annotations

from herder.nodes.agent import NodeAgent
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def node(simulation: Simulation, name: str) -> Machine:
    """A node; killed, its agent is gone until it is started again."""

    async def main(machine: Machine) -> None:
        await NodeAgent(simulation.client(machine, "nodes"), machine.world, name, "simulated://1", CAPACITY).run()

    return simulation.machine(name, main)
