"""The agent of one node: registers it, keeps saying that it is there, and runs the pods that are bound to it."""

from __future__ import annotations

import asyncio

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.cache import Cache, cache_metrics_of
from herder.kube.client import Client, Selection
from herder.kube.controller import Work as Workers
from herder.kube.enqueue import enqueue
from herder.kube.queue import Backoff, Queue
from herder.kube.resources import NODES, PODS
from herder.nodes.disk_space import DiskSpace
from herder.nodes.endpoint import Endpoint
from herder.nodes.guests import Guests, Volumes
from herder.nodes.heartbeat import Heartbeat
from herder.nodes.moving import Link, MemoryNotes, Mover, Notes, Switchboard
from herder.nodes.node import NodeSettings
from herder.nodes.pods import PodKeeper, Site
from herder.nodes.runtimes.base import Runtime
from herder.nodes.work import Work
from herder.rules.matching.resources import amounts

WORKERS = 8
# A node that was cut off catches up within seconds of being back: pods wait for it to let them go.
SOON_AGAIN = Backoff(longest=10.0)
# A guest may take a while to be prepared; an image may be large.
LIMIT = 1800.0


class Parts(msgspec.Struct, frozen=True):
    """What an agent is made of, beside the runtime."""

    volumes: Volumes
    imports: Work | None = None
    plain: Work | None = None
    # Where the API server looks in; NodeSettings.port has to be the port of it.
    endpoint: Endpoint | None = None
    # What must be remembered of guests that are moved, and how other nodes' agents are reached; without them nobody is.
    notes: Notes | None = None
    link: Link | None = None
    # The file system of its volumes, where they take real room.
    space: DiskSpace | None = None


class NodeAgent:
    def __init__(
        self, client: Client, world: World, settings: NodeSettings, runtime: Runtime, parts: Parts, registry: CollectorRegistry
    ) -> None:
        self._client = client
        self._world = world
        self._settings = settings
        self._runtime = runtime
        self._parts = parts
        self._registry = registry
        self.registered = asyncio.Event()

    async def run(self) -> None:
        """For as long as it is let. Guests that run go on without it, where the runtime can do that."""
        host = await self._runtime.host()
        counted = cache_metrics_of(self._registry)
        cache = Cache(self._client, PODS, Selection(fields=f"spec.nodeName={self._settings.name}"), self._world, counted)
        queue = Queue(self._world, "pods", registry=self._registry, backoff=SOON_AGAIN)
        site = self._site()
        self._parts.volumes.follow(cache)
        keeper = PodKeeper(self._client, cache, queue, self._world, {site.name: site})
        tenants = keeper.tenants(site.name)
        # Until it is known that the Node is there, and not about to go.
        keeper.hold(site.name)
        space = self._parts.space
        pressure = (lambda: space.pressure) if space is not None else (lambda: False)
        heartbeat = Heartbeat(self._client, self._world, self._settings, host, tenants, disk_pressure=pressure)
        if space is not None:
            space.subscribe(heartbeat.tell_again)
        heartbeat.registered = self.registered
        itself = Cache(self._client, NODES, Selection(fields=f"metadata.name={self._settings.name}"), self._world, counted)
        itself.subscribe(lambda change: heartbeat.node_seen(change.new.view if change.new else None))
        if self._parts.endpoint is not None:
            self._parts.endpoint.add(keeper)
        for work in site.works():
            await work.open(keeper.changed)
        workers = Workers(keeper, queue, WORKERS, world=self._world, registry=self._registry, limit=LIMIT)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(cache.run())
                group.create_task(itself.run())
                await cache.wait_synced()
                # Before anybody hears that we are here.
                await keeper.remove_orphans()
                group.create_task(heartbeat.run())
                enqueue(cache, queue)
                group.create_task(workers.run())
        finally:
            keeper.close()
            for work in site.works():
                await work.close()

    def _site(self) -> Site:
        name, parts = self._settings.name, self._parts
        link = parts.link or Switchboard(self._world.uid()).link(name)
        mover = Mover(name, self._runtime, parts.notes or MemoryNotes(), link, self._world)
        return Site(
            name=self._settings.name,
            address=self._settings.address,
            allocatable=amounts(self._settings.capacity),
            guests=Guests(self._runtime, self._parts.volumes, mover),
            imports=self._parts.imports,
            plain=self._parts.plain,
        )
