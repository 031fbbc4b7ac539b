"""The agents' own process: the nodes of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.app.data_directory import DataDirectory
from herder.app.kubeconfig import ENGINE_AT_NODES
from herder.kube.client import Client
from herder.kube.http import HttpTransport
from herder.nodes.endpoint import Endpoint, server_tls
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings

AGENT = "herder-agent"
# How many Leases a second are renewed at most, all nodes together: ever more nodes must not fill the engine with heartbeats.
RENEWALS_PER_SECOND = 50
SOONEST_RENEWAL = 10.0


class Agents(Protocol):
    registered: asyncio.Event

    async def run(self) -> None: ...


async def run(directory: DataDirectory, nodes: int, runtime: str, ready_fd: int) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(HttpTransport.over_socket(directory.socket, AGENT), AGENT) as client:
        endpoint = Endpoint(_tls(directory.pki), (ENGINE_AT_NODES,), RealWorld())
        await endpoint.start(listen_on("the agents", "127.0.0.1", 0))
        version = runtime.rpartition("/")[2]
        agents = Fleet(client, RealWorld(), settings_for(nodes), CollectorRegistry(), version, endpoint)
        # A task of its own: told to stop, it stops even while it waits for an engine that never comes.
        working = asyncio.create_task(_work(client, agents, ready_fd))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        await asyncio.wait([working])
        await endpoint.stop()
        if not working.cancelled():
            working.result()
    return 0


def _tls(pki: Path) -> ssl.SSLContext:
    return server_tls(pki / "kubelet.crt", pki / "kubelet.key", pki / "ca.crt")


def settings_for(nodes: int) -> tuple[NodeSettings, ...]:
    renew = max(SOONEST_RENEWAL, nodes / RENEWALS_PER_SECOND)
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    return tuple(NodeSettings(name=name, renew_every=renew, lease_seconds=int(renew * 4)) for name in names)


async def _work(client: Client, agents: Agents, ready_fd: int) -> None:
    await client.wait_until_ready()
    async with asyncio.TaskGroup() as group:
        group.create_task(agents.run())
        await agents.registered.wait()
        os.write(ready_fd, b"r")
        os.close(ready_fd)
