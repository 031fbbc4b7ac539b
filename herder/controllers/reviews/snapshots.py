"""The cluster as reviews see it: made from the caches when somebody asks, and used again for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeVar

from herder.api.meta import Identified
from herder.kube.cache import Cache, view_of
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, NAMESPACES, NODES, PODS, RESERVATIONS, STORAGE_CLASSES, VOLUMES
from herder.rules.placement import Snapshot
from herder.rules.placement.gather import Everything, fill

# It is used for so many times as long as it took to make: in a small cluster it is always new, and in a large one those who ask
# again and again cost the others no more than one part in so many.
TIMES = 20
LONGEST = 30.0
V = TypeVar("V", bound=Identified)


class RecentSnapshot:
    def __init__(self, kit: Kit) -> None:
        of = kit.caches.of
        self._nodes, self._pods, self._namespaces = of(NODES), of(PODS), of(NAMESPACES)
        self._claims, self._volumes, self._classes = of(CLAIMS), of(VOLUMES), of(STORAGE_CLASSES)
        self._reservations = of(RESERVATIONS)
        self._clock = asyncio.get_running_loop().time
        self._made: Snapshot | None = None
        self._good_until = 0.0

    async def get(self) -> Snapshot:
        if self._made is None or self._clock() >= self._good_until:
            began = self._clock()
            self._made = await self._build()
            self._good_until = self._clock() + min(TIMES * (self._clock() - began), LONGEST)
        return self._made

    async def _build(self) -> Snapshot:
        snapshot = Snapshot()
        everything = Everything(
            nodes=_views(self._nodes),
            pods=_views(self._pods),
            namespaces=_views(self._namespaces),
            claims=_views(self._claims),
            volumes=_views(self._volumes),
            classes=_views(self._classes),
            reservations=_views(self._reservations),
        )
        for _ in fill(snapshot, everything):
            await asyncio.sleep(0)
        return snapshot


def _views(cache: Cache[V]) -> Iterator[V]:
    """What has gone since we began is left out."""
    for key in cache.keys():  # noqa: SIM118 - not a dict
        view = view_of(cache.stored(key))
        if view is not None:
            yield view
