"""One node's agent, or a fleet of simulated ones, against any cluster that a kubeconfig names."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.world import RealWorld, World
from herder.app import node_known, node_serving
from herder.app.health import serve_health
from herder.app.node_migration import MigrationSettings, network_of
from herder.app.node_serving import EndpointSettings
from herder.app.refusal import CANNOT_USE_CLUSTER, Refusal
from herder.kit.process_metrics import measure_process
from herder.kube.client import Client
from herder.kube.errors import Forbidden, KubeError, Unauthorized
from herder.kube.resources import NODES, Key
from herder.kube.transport import Call, Transport
from herder.net.files import raise_file_limit
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.endpoint import Endpoint
from herder.nodes.fleet import Fleet
from herder.nodes.guests import NoVolumes
from herder.nodes.imports import ImportSettings
from herder.nodes.local import LocalNodes, MigrationNetwork
from herder.nodes.node import NodeSettings
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime

log = structlog.get_logger()
AGENT = "herder-agent"
TRY_AGAIN = 1.0
HOW = "a node's user is system:node:NAME in the group system:nodes, and docs/nodes.md says how to make it"


class Agents(Protocol):
    registered: asyncio.Event

    async def run(self) -> None: ...


class Settings(msgspec.Struct, frozen=True):
    nodes: tuple[NodeSettings, ...]
    # Of one process: any Node that is labelled as simulated, beside those named here.
    fleet: bool
    version: str
    # Where QEMU's guests and volumes are kept; None where guests are simulated.
    folder: Path | None = None
    imports: ImportSettings = ImportSettings()
    # Where the API server looks in; None for nowhere.
    endpoint: EndpointSettings | None = None
    # How guests come from other machines, and go there; None where guests are simulated.
    migration: MigrationSettings | None = None
    heartbeat: float | None = None


async def run(transport: Transport, settings: Settings, say: Callable[[str], None], listener: socket.socket | None = None) -> None:
    """Until it is told to stop. Raises Refusal where the cluster does not let us in. `listener`: where our numbers are told."""
    raise_file_limit()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(transport, AGENT) as client:
        working = asyncio.create_task(_work(client, settings, say, listener))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        await asyncio.wait([working])
        if not working.cancelled():
            working.result()


async def _work(client: Client, settings: Settings, say: Callable[[str], None], listener: socket.socket | None) -> None:
    registry, registered = CollectorRegistry(), asyncio.Event()
    measure_process(registry)
    async with contextlib.AsyncExitStack() as stack:
        if listener is not None:
            await stack.enter_async_context(serve_health(listener, registry, lambda: "", lambda: _why_not_ready(registered)))
        await check_known(client, settings.nodes[0].name)
        endpoint, serving = None, None
        if settings.endpoint is not None and await signs_certificates(client):
            endpoint, serving = await stack.enter_async_context(node_serving.served(client, RealWorld(), settings.endpoint, say))
        elif settings.endpoint is not None and settings.endpoint.signable:
            endpoint = await stack.enter_async_context(node_known.served(settings.endpoint, RealWorld()))
        network = network_of(settings.migration, serving, RealWorld()) if settings.migration is not None else None
        agents = make(client, RealWorld(), settings, registry, endpoint, network)
        await _serve(agents, registered, settings, say)


def _why_not_ready(registered: asyncio.Event) -> str:
    return "" if registered.is_set() else "the API server has not registered us yet"


async def _serve(agents: Agents, registered: asyncio.Event, settings: Settings, say: Callable[[str], None]) -> None:
    running = asyncio.create_task(agents.run())
    registering = asyncio.create_task(agents.registered.wait())
    try:
        await asyncio.wait([running, registering], return_when=asyncio.FIRST_COMPLETED)
        if registering.done():
            registered.set()
            names = [one.name for one in settings.nodes]
            say(f"{names[0]} is registered" if len(names) == 1 else f"{names[0]} to {names[-1]} are registered")
        await running
    finally:
        registering.cancel()
        running.cancel()
        await asyncio.wait([running])


def make(
    client: Client,
    world: World,
    settings: Settings,
    registry: CollectorRegistry,
    endpoint: Endpoint | None,
    network: MigrationNetwork | None = None,
) -> Agents:
    if settings.fleet:
        shown = (registry, settings.version, endpoint, settings.heartbeat)
        return Fleet(client, world, settings.nodes, *shown, name=settings.nodes[0].labels.get(labels.AGENT, ""))
    (node,) = settings.nodes
    if settings.folder is not None:
        # Told to stop, it leaves its guests running: the agent ends, not the node.
        return LocalNodes(
            [(client, node)], world, settings.folder.absolute(), PROGRAM, endpoint, settings.imports, registry, network
        )
    node = msgspec.structs.replace(node, port=endpoint.port if endpoint is not None else 0)
    runtime = SimulatedRuntime(node.name, world, Network(), version=settings.version)
    parts = Parts(volumes=NoVolumes(), plain=PlainPods(world), endpoint=endpoint)
    return NodeAgent(client, world, node, runtime, parts, registry)


async def check_known(client: Client, node: str) -> None:
    """Whether the cluster takes us for this node, asked before anything starts. A server that does not answer is waited for."""
    told = False
    while True:
        try:
            await client.find(NODES, Key("", node))
            return
        except (Unauthorized, Forbidden) as error:
            raise Refusal(f"the API server does not take us for node {node}: {error}; {HOW}", CANNOT_USE_CLUSTER) from None
        except KubeError as error:
            if not told:
                log.warning("the API server does not answer, will try again", error=str(error))
            told = True
            await asyncio.sleep(TRY_AGAIN)


async def signs_certificates(client: Client) -> bool:
    """The embedded engine does not: it takes the certificate by which it knows the node."""
    return (await client.transport.send(Call("GET", "/apis/certificates.k8s.io/v1"))).status == 200
