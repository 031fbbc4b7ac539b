"""All simulated nodes of a process: those asked for, and every Node that a user labels `herder.dev/runtime: simulated`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.core import Node
from herder.api.world import World
from herder.kube.cache import Cache, Change
from herder.kube.client import Client, Selection
from herder.kube.controller import Work as Workers
from herder.kube.enqueue import enqueue
from herder.kube.queue import Queue
from herder.kube.resources import NODES, PODS
from herder.nodes.agent import SOON_AGAIN
from herder.nodes.endpoint import Endpoint
from herder.nodes.guests import Guests, NoVolumes
from herder.nodes.heartbeat import Heartbeat
from herder.nodes.imports import SimulatedImports
from herder.nodes.moving import MemoryNotes, Mover, Switchboard
from herder.nodes.node import NodeSettings, written_cpu
from herder.nodes.plain import PlainPods
from herder.nodes.pods import PodKeeper, Site
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from herder.rules.matching.resources import amounts

log = structlog.get_logger()
WORKERS = 32
SHARED_STORAGE = "simulated"
SIMULATED = Selection(labels=f"{labels.RUNTIME}=simulated")


class Fleet:
    def __init__(
        self,
        client: Client,
        world: World,
        asked_for: tuple[NodeSettings, ...],
        registry: CollectorRegistry,
        version: str = "1",
        endpoint: Endpoint | None = None,
    ) -> None:
        """Without an endpoint nobody can look into what runs here."""
        self._client = client
        self._world = world
        self._asked_for = {settings.name: settings for settings in asked_for}
        self._version = version
        self._registry = registry
        self._network = Network()
        self._switchboard = Switchboard("fleet")
        self._nodes = Cache(client, NODES, SIMULATED, world)
        self._pods = Cache(client, PODS, Selection(), world)
        self._queue = Queue(world, "pods", registry=registry, backoff=SOON_AGAIN)
        self._sites: dict[str, Site] = {}
        self._beats: dict[str, asyncio.Task[None]] = {}
        self._runtimes: dict[str, SimulatedRuntime] = {}
        self._keeper = PodKeeper(client, self._pods, self._queue, world, self._sites)
        self._port = endpoint.port if endpoint is not None else 0
        if endpoint is not None:
            endpoint.add(self._keeper)
        self.registered = asyncio.Event()

    async def run(self) -> None:
        workers = Workers(self._keeper, self._queue, WORKERS, world=self._world, registry=self._registry)
        try:
            await self._run(workers)
        finally:
            self._keeper.close()
            for site in self._sites.values():
                await _close(site)

    async def _run(self, workers: Workers) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._nodes.run())
            await self._pods.wait_synced()
            await self._nodes.wait_synced()
            self._nodes.subscribe(lambda change: self._node_changed(change, group))
            beats = [self._add(settings, group) for name, settings in self._asked_for.items() if name not in self._sites]
            group.create_task(self._say_when_registered(beats))
            enqueue(self._pods, self._queue)
            group.create_task(workers.run())

    async def _say_when_registered(self, beats: list[Heartbeat]) -> None:
        for beat in beats:
            await beat.registered.wait()
        self.registered.set()

    def _node_changed(self, change: Change[Node], group: asyncio.TaskGroup) -> None:
        name = change.key.name
        if change.new is None:
            # Taken away: its guests are gone with it, and it is not made again.
            if beat := self._beats.pop(name, None):
                beat.cancel()
            self._runtimes.pop(name, None)
            if site := self._sites.pop(name, None):
                self._keeper.leave(site.name)
                group.create_task(_close(site))
        elif name not in self._sites:
            settings = self._asked_for.get(name) or NodeSettings(name=name)
            self._add(_as_written(settings, change.new.view), group, change.new.labels)
        else:
            self._runtimes[name].have(written_cpu(change.new.labels))

    def _add(self, settings: NodeSettings, group: asyncio.TaskGroup, written: Mapping[str, str] | None = None) -> Heartbeat:
        # They see the same volumes, unless their Node says something else.
        settings = msgspec.structs.replace(settings, port=self._port, storage=settings.storage or SHARED_STORAGE)
        runtime = SimulatedRuntime(settings.name, self._world, self._network, version=self._version)
        runtime.have(written_cpu(written or {}))
        self._runtimes[settings.name] = runtime
        mover = Mover(settings.name, runtime, MemoryNotes(), self._switchboard.link(settings.name), self._world)
        site = Site(
            name=settings.name,
            address=settings.address,
            allocatable=amounts(settings.capacity),
            guests=Guests(runtime, NoVolumes(), mover),
            imports=SimulatedImports(self._world),
            plain=PlainPods(self._world),
        )
        self._sites[settings.name] = site
        beat = Heartbeat(self._client, self._world, settings, runtime.description)
        self._beats[settings.name] = group.create_task(self._serve(site, beat))
        return beat

    async def _serve(self, site: Site, beat: Heartbeat) -> None:
        for work in site.works():
            await work.open(self._keeper.changed)
        # Pods that were bound to it before we knew of it.
        for key in self._keeper.keys_on(site.name):
            self._queue.add(key)
        await beat.run()


async def _close(site: Site) -> None:
    for work in site.works():
        await work.close()


def _as_written(settings: NodeSettings, node: Node) -> NodeSettings:
    written = {**settings.capacity, **{name: str(value) for name, value in node.status.capacity.items()}}
    return msgspec.structs.replace(settings, capacity=written)
