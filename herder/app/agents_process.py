"""The agents' own process: the nodes of this machine."""

from __future__ import annotations

import asyncio
import os
import signal

from herder.api.world import RealWorld
from herder.app.data_directory import DataDirectory
from herder.kube.client import Client
from herder.kube.http import HttpTransport
from herder.nodes.agent import NodeAgent

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


async def run(directory: DataDirectory, nodes: int, runtime: str, ready_fd: int) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(HttpTransport.over_socket(directory.socket, "herder-agent"), "herder-agent") as client:
        agents = [NodeAgent(client, RealWorld(), f"node-{number}", runtime, CAPACITY) for number in range(1, nodes + 1)]
        # A task of its own: told to stop, it stops even while it waits for an engine that never comes.
        working = asyncio.create_task(_work(client, agents, ready_fd))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        await asyncio.wait([working])
        if not working.cancelled():
            working.result()
    return 0


async def _work(client: Client, agents: list[NodeAgent], ready_fd: int) -> None:
    await client.wait_until_ready()
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(agent.run())
        for agent in agents:
            await agent.registered.wait()
        os.write(ready_fd, b"r")
        os.close(ready_fd)
