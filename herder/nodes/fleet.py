"""All simulated nodes of a process: those asked for, and every Node that a user labels `herder.dev/runtime: simulated`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.core import Node
from herder.api.world import World
from herder.kube.cache import Cache, Change, Stored, cache_metrics_of
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
from herder.nodes.node import RENEW_EVERY, NodeSettings, as_written
from herder.nodes.plain import PlainPods
from herder.nodes.pods import PodKeeper, Site
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from herder.rules.matching.resources import amounts

log = structlog.get_logger()
WORKERS = 32
# How many nodes are registered at the same time.
AT_ONCE = 64
# How many Leases a second are renewed at most, all nodes together: ever more nodes must not fill the engine with heartbeats.
RENEWALS_PER_SECOND = 50
SHARED_STORAGE = "simulated"
# On a Node: its agent says and does nothing, as if it were cut off.
SILENT = f"{labels.SIMULATED}silent"
FINALIZER = labels.NODE_FINALIZER.encode()
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
        renew_every: float | None = None,
        others: Collection[str] = (),
        name: str = "",
    ) -> None:
        """`others` are nodes that have an agent of their own, whatever their labels say. `name` is written on every node that is
        ours: nodes with another one are left to whoever wrote it. Without an endpoint nobody can look into what runs here. Unless
        it is said how often, Leases are renewed as often as so many nodes may."""
        self._client = client
        self._world = world
        self._asked_for = {settings.name: settings for settings in asked_for}
        self._version = version
        self._renew = renew_every
        self._others = frozenset(others)
        self._name = name
        self._registry = registry
        self._network = Network()
        self._switchboard = Switchboard("fleet")
        self._nodes = Cache(client, NODES, SIMULATED, world, cache_metrics_of(registry))
        self._pods = Cache(client, PODS, Selection(), world, cache_metrics_of(registry))
        self._queue = Queue(world, "pods", registry=registry, backoff=SOON_AGAIN)
        self._sites: dict[str, Site] = {}
        self._beats: dict[str, tuple[Heartbeat, asyncio.Task[None]]] = {}
        # Cut off, as users want it: what runs there goes on, and nobody hears of it.
        self._silent: dict[str, tuple[Site, Heartbeat]] = {}
        self._runtimes: dict[str, SimulatedRuntime] = {}
        self._keeper = PodKeeper(client, self._pods, self._queue, world, self._sites)
        self._turns = asyncio.Semaphore(AT_ONCE)
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
            for site in (*self._sites.values(), *(site for site, _ in self._silent.values())):
                await _close(site)

    async def _run(self, workers: Workers) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            await self._nodes.wait_synced()
            if not self._asked_for:
                self.registered.set()
                await self._first_node()
            group.create_task(self._pods.run())
            await self._pods.wait_synced()
            self._nodes.subscribe(lambda change: self._node_changed(change, group))
            wanted = [
                settings for name, settings in self._asked_for.items() if name not in self._sites and name not in self._silent
            ]
            beats = [self._add(settings, group, is_new=True) for settings in wanted]
            group.create_task(self._say_when_registered(beats))
            enqueue(self._pods, self._queue)
            group.create_task(workers.run())

    async def _first_node(self) -> None:
        """Where there is no simulated node nobody need hear of every pod of the cluster."""
        seen = asyncio.Event()
        leave = self._nodes.subscribe(lambda change: seen.set() if self._may_adopt(change) else None)
        await seen.wait()
        leave()

    async def _say_when_registered(self, beats: list[Heartbeat]) -> None:
        for beat in beats:
            await beat.registered.wait()
        self.registered.set()

    def _node_changed(self, change: Change[Node], group: asyncio.TaskGroup) -> None:
        name = change.key.name
        if not self._may_adopt(change):
            self._take_away(name, group)
            return
        if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
            self._take_away(name, group)
        if change.new is None:
            return
        if _is_silent(change.new):
            self._fall_silent(name)
        elif name in self._silent:
            self._speak_again(name, group)
        elif name not in self._sites:
            settings = self._asked_for.get(name) or NodeSettings(name=name)
            self._add(_as_written(settings, change.new.view), group, change.new.labels)
        else:
            self._seen_again(change.new)

    def _may_adopt(self, change: Change[Node]) -> bool:
        written = change.new.labels.get(labels.AGENT, "") if change.new is not None else ""
        return change.key.name not in self._others and (not self._name or written in ("", self._name))

    def _seen_again(self, node: Stored[Node]) -> None:
        name = node.key.name
        self._runtimes[name].have(*as_written(node.labels))
        speaks = b'"Unknown"' in node.raw or b'"deletionTimestamp"' in node.raw or FINALIZER not in node.raw
        if speaks and name in self._beats:
            # Only these are read: there may be thousands.
            self._beats[name][0].node_seen(node.view)

    def _take_away(self, name: str, group: asyncio.TaskGroup) -> None:
        """Its guests are gone with it, and it is not made again."""
        self._runtimes.pop(name, None)
        if name in self._beats:
            self._beats.pop(name)[1].cancel()
        site = self._sites.pop(name, None) or self._silent.pop(name, (None, None))[0]
        if site is not None:
            self._keeper.leave(site.name)
            group.create_task(_close(site))

    def _fall_silent(self, name: str) -> None:
        if name in self._sites and name in self._beats:
            beat, task = self._beats.pop(name)
            task.cancel()
            self._silent[name] = (self._sites.pop(name), beat)

    def _speak_again(self, name: str, group: asyncio.TaskGroup) -> None:
        self._sites[name], beat = self._silent.pop(name)
        self._beats[name] = (beat, group.create_task(self._go_on(name, beat)))

    def _add(
        self,
        settings: NodeSettings,
        group: asyncio.TaskGroup,
        written: Mapping[str, str] | None = None,
        *,
        is_new: bool = False,
    ) -> Heartbeat:
        # They see the same volumes, unless their Node says something else.
        storage, ours = settings.storage or SHARED_STORAGE, {labels.AGENT: self._name} if self._name else {}
        settings = msgspec.structs.replace(settings, port=self._port, storage=storage, labels={**settings.labels, **ours})
        runtime = SimulatedRuntime(settings.name, self._world, self._network, version=self._version)
        runtime.have(*as_written(written or {}))
        self._runtimes[settings.name] = runtime
        mover = Mover(settings.name, runtime, MemoryNotes(), self._switchboard.link(settings.name), self._world)
        site = Site(
            name=settings.name,
            address=settings.address,
            allocatable=amounts(settings.capacity),
            guests=Guests(runtime, NoVolumes(), mover),
            imports=SimulatedImports(self._world, runtime),
            plain=PlainPods(self._world),
        )
        self._sites[settings.name] = site
        beat = Heartbeat(
            self._client,
            self._world,
            settings,
            runtime.description,
            self._keeper.tenants(settings.name),
            turns=self._turns,
            renew_every=self._renew_every,
            is_new=is_new,
            comes_back=False,
        )
        self._beats[settings.name] = (beat, group.create_task(self._serve(site, beat)))
        return beat

    def _renew_every(self) -> float:
        return self._renew or max(RENEW_EVERY, len(self._sites) / RENEWALS_PER_SECOND)

    async def _serve(self, site: Site, beat: Heartbeat) -> None:
        for work in site.works():
            await work.open(self._keeper.changed)
        await self._go_on(site.name, beat)

    async def _go_on(self, name: str, beat: Heartbeat) -> None:
        # Pods that were bound to it, or changed, before we knew of it.
        for key in self._keeper.keys_on(name):
            self._queue.add(key)
        await beat.run()


async def _close(site: Site) -> None:
    for work in site.works():
        await work.close()


def _is_silent(stored: Stored[Node]) -> bool:
    return SILENT.encode() in stored.raw and stored.view.annotations.get(SILENT) == "true"


def _as_written(settings: NodeSettings, node: Node) -> NodeSettings:
    written = {**settings.capacity, **{name: str(value) for name, value in node.status.capacity.items()}}
    return msgspec.structs.replace(settings, capacity=written)
