"""The caches of a process: one for each kind and selection, however many ask for it."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from herder.api.meta import Identified
from herder.api.world import World
from herder.kube.cache.cache import Cache
from herder.kube.cache.metrics import cache_metrics_of
from herder.kube.client import EVERYTHING, Client, Selection
from herder.kube.resources import Resource

V = TypeVar("V", bound=Identified)


class Caches:
    def __init__(self, client: Client, world: World, registry: CollectorRegistry | None = None) -> None:
        self._client = client
        self._world = world
        self._metrics = cache_metrics_of(registry)
        self._caches: dict[tuple[Resource[Any], Selection], Cache[Any]] = {}
        self._group: asyncio.TaskGroup | None = None

    def of(self, resource: Resource[V], selection: Selection = EVERYTHING) -> Cache[V]:
        """Made when first asked for, and started at once if the others run already."""
        cache = self._caches.get((resource, selection))
        if cache is None:
            cache = self._caches[resource, selection] = Cache(self._client, resource, selection, self._world, self._metrics)
            self._start(cache)
        return cache

    async def run(self) -> None:
        """All of them, also those that are added later; for ever."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for cache in self._caches.values():
                    self._start(cache)
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None

    async def wait_synced(self) -> None:
        """All that are known by now."""
        for cache in tuple(self._caches.values()):
            await cache.wait_synced()

    def stop_measuring(self) -> None:
        """Once they are not run any more: what they held is not held any more, neither by the numbers."""
        for cache in self._caches.values():
            cache.stop_measuring()

    def _start(self, cache: Cache[Any]) -> None:
        if self._group is not None:
            self._group.create_task(cache.run(), name=f"cache of {cache.resource.qualified}")
