"""The agents' own process: the nodes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from importlib.metadata import version
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app import garbage
from herder.app.address import listen_on
from herder.app.data_directory import DataDirectory
from herder.app.health import serve_health
from herder.app.identities import fleet_transport, node_names, node_transport
from herder.app.kubeconfig import ENGINE_AT_NODES
from herder.app.reloading import Reloading
from herder.app.scrape import listen_for_scrapes
from herder.app.stopping import Stop
from herder.app.storage_reserve import reserve_of
from herder.kit.process_metrics import measure_process
from herder.kit.tasks import keep_running
from herder.kube.client import Client
from herder.net.files import raise_file_limit
from herder.nodes.endpoint import Endpoint, Named, server_tls
from herder.nodes.fleet import Fleet
from herder.nodes.imports import ImportSettings
from herder.nodes.local import LocalNodes, share
from herder.nodes.node import RENEW_EVERY, NodeSettings
from herder.nodes.runtimes.choice import PROGRAM, SIMULATED

AGENT = "herder-agent"
# What is written on simulated nodes of `herder up`: the next one knows them for its own by that.
FLEET = "herder-up"
# For guests to shut down when we are told to stop; the supervisor has more patience than that.
SHUT_DOWN_PATIENCE = 4.0
# All nodes of this machine see the same volumes.
STORAGE_DOMAIN = "local"


class Settings(msgspec.Struct, frozen=True):
    nodes: int
    runtime: str
    allow_local_imports: bool = False
    heartbeat: float | None = None
    storage_reserve: str = ""


async def run(directory: DataDirectory, settings: Settings, ready_fd: int) -> int:
    raise_file_limit()
    stop = Stop(supervised=True)
    stop.listen()
    async with contextlib.AsyncExitStack() as stack:
        registry = CollectorRegistry()
        measure_process(registry)
        # The engine shows our numbers with its own. Whether we are ready is said by the file that the supervisor gave us.
        listener = listen_for_scrapes(directory, "agents")
        await stack.enter_async_context(serve_health(listener, registry, lambda: "", lambda: ""))
        tls = _tls(directory.pki)
        endpoint = Endpoint(tls, Named((ENGINE_AT_NODES,)), RealWorld())
        await endpoint.start(listen_on("the agents", "127.0.0.1", 0))
        reloading = keep_running(Reloading(tls, directory.pki, "kubelet").keep(), "renewed certificates")
        stack.callback(reloading.cancel)
        client = await stack.enter_async_context(Client(fleet_transport(directory, AGENT), AGENT))
        agents = await make(client, directory, settings, endpoint, stack, registry)
        # A task of its own: told to stop, it stops even while it waits for an engine that never comes.
        working = asyncio.create_task(_work(client, agents, ready_fd))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stop.ends_guests:
            agents.end_guests_on_close(SHUT_DOWN_PATIENCE)
        working.cancel()
        await asyncio.wait([working])
        await endpoint.stop()
        if not working.cancelled():
            working.result()
    return 0


async def make(
    fleet: Client,
    directory: DataDirectory,
    settings: Settings,
    endpoint: Endpoint,
    stack: contextlib.AsyncExitStack,
    registry: CollectorRegistry,
) -> AllAgents:
    """Nodes that a user labels as simulated are adopted whatever the others run on, and whether there are others or not."""
    nodes = settings_for(settings.nodes, settings.heartbeat)
    shown = (registry, version("herder"), endpoint, settings.heartbeat)
    if not nodes or settings.runtime.startswith(SIMULATED):
        return AllAgents(Fleet(fleet, RealWorld(), nodes, *shown, name=FLEET))
    real = await _local(directory, settings, nodes, endpoint, stack, registry)
    return AllAgents(Fleet(fleet, RealWorld(), (), *shown, others=[one.name for one in nodes], name=FLEET), real)


class AllAgents:
    """Of this process: those of simulated nodes, and of QEMU nodes where there are any."""

    def __init__(self, fleet: Fleet, real: LocalNodes | None = None) -> None:
        self._fleet = fleet
        self._real = real
        self.registered = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for agents in (self._fleet, self._real):
                if agents is not None:
                    group.create_task(agents.run())
            await self._fleet.registered.wait()
            if self._real is not None:
                await self._real.registered.wait()
            self.registered.set()

    def end_guests_on_close(self, patience: float) -> None:
        if self._real is not None:
            self._real.end_guests_on_close(patience)


async def _local(
    directory: DataDirectory,
    settings: Settings,
    nodes: tuple[NodeSettings, ...],
    endpoint: Endpoint,
    stack: contextlib.AsyncExitStack,
    registry: CollectorRegistry,
) -> LocalNodes:
    # Each is its own node to the engine, and no other.
    clients = [Client(node_transport(directory, one.name, AGENT), AGENT) for one in nodes]
    for client in clients:
        await stack.enter_async_context(client)
    # They run no containers: a plain pod that came would fail at once, and whoever keeps it would make the next.
    vm_hosts = [msgspec.structs.replace(one, tainted=True) for one in nodes]
    shares = [share(one, len(nodes), STORAGE_DOMAIN) for one in vm_hosts]
    imports = ImportSettings(settings.allow_local_imports, reserve_of(settings.storage_reserve))
    pairs = list(zip(clients, shares, strict=True))
    return LocalNodes(pairs, RealWorld(), directory.path.absolute(), PROGRAM, endpoint, imports, registry)


def _tls(pki: Path) -> ssl.SSLContext:
    return server_tls(pki / "kubelet.crt", pki / "kubelet.key", pki / "ca.crt")


def settings_for(nodes: int, heartbeat: float | None) -> tuple[NodeSettings, ...]:
    return tuple(NodeSettings(name=name, renew_every=heartbeat or RENEW_EVERY) for name in node_names(nodes))


async def _work(client: Client, agents: AllAgents, ready_fd: int) -> None:
    await client.wait_until_ready()
    async with asyncio.TaskGroup() as group:
        group.create_task(agents.run())
        await agents.registered.wait()
        # Nodes stay: the collector need not look at all of them again and again.
        garbage.look_seldom()
        os.write(ready_fd, b"r")
        os.close(ready_fd)
