"""All objects of one kind (or those of a selection) in memory, as the server last told."""

from __future__ import annotations

import asyncio
from builtins import list as list_of
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry

from herder.api.meta import Identified
from herder.api.world import RealWorld, World
from herder.kube.cache.indexes import Index
from herder.kube.cache.metrics import CacheMetrics
from herder.kube.cache.reading import version_of
from herder.kube.cache.reflector import Reflector
from herder.kube.cache.seen import Seen
from herder.kube.cache.stored import Change, Stored
from herder.kube.cache.table import Table
from herder.kube.client import EVERYTHING, Client, Selection
from herder.kube.errors import Unreadable
from herder.kube.resources import Key, Resource

V = TypeVar("V", bound=Identified)
# A write of ours comes back within milliseconds, unless the selection leaves it out: then somebody has to ask.
PATIENCE = 1.0


class Cache(Generic[V]):
    def __init__(
        self,
        client: Client,
        resource: Resource[V],
        selection: Selection = EVERYTHING,
        world: World | None = None,
        metrics: CacheMetrics | None = None,
    ) -> None:
        self.resource = resource
        self.selection = selection
        self._counts = counts = (metrics or CacheMetrics(CollectorRegistry())).of(resource.qualified, _words(selection))
        self._table: Table[V] = Table()
        self._seen = Seen()
        self._synced = asyncio.Event()
        counts.measure(lambda: len(self._table.objects), lambda: self._seen.version)
        self._reflector = Reflector(
            client, resource, selection, world or RealWorld(), self._table, self._seen, counts, self._synced.set
        )

    async def run(self) -> None:
        """For ever; cancel it to end it. What it holds stays, and a second run goes on from there."""
        await self._reflector.run()

    def stop_measuring(self) -> None:
        """Its gauges are gone; what it counted stays."""
        self._counts.stop_measuring()

    # Reads. All at once and without waiting: between two of them nothing changes unless the caller waits for something.

    def get(self, key: Key) -> V | None:
        """Raises Unreadable where this very object is not what its view says."""
        stored = self._table.objects.get(key)
        return stored.view if stored is not None else None

    def stored(self, key: Key) -> Stored[V] | None:
        """With its bytes, its version, owners and labels; nothing is decoded for that."""
        return self._table.objects.get(key)

    def raw(self, key: Key) -> bytes | None:
        stored = self._table.objects.get(key)
        return stored.raw if stored is not None else None

    def keys(self) -> tuple[Key, ...]:
        return tuple(sorted(self._table.objects))

    def list(self, namespace: str = "") -> list_of[V]:
        """By namespace and name. Objects that cannot be read are left out; they are counted and logged."""
        return self._views(key for key in self.keys() if not namespace or key.namespace == namespace)

    def __len__(self) -> int:
        return len(self._table.objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._table.objects

    def add_index(self, index: Index[Any]) -> None:
        """Before or after the start, more than once if need be."""
        self._table.add_index(index)

    def by(self, index: Index[Any], value: str) -> list_of[V]:
        return self._views(self._table.keys_by(index, value))

    def keys_by(self, index: Index[Any], value: str) -> tuple[Key, ...]:
        return self._table.keys_by(index, value)

    def subscribe(self, handler: Callable[[Change[V]], None]) -> Callable[[], None]:
        """The handler is called for each change, in order, when the cache already shows it; first for all that is there. It
        must not wait. The answer ends the subscription."""
        return self._table.subscribe(handler)

    # How far it is.

    @property
    def has_synced(self) -> bool:
        """Whether there was a whole list."""
        return self._synced.is_set()

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything is here."""
        return self._seen.version

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def has_seen(self, resource_version: str) -> bool:
        """Whether everything up to this state of an object of this kind is in the cache (or left out by its selection)."""
        return self._seen.version >= version_of(resource_version)

    async def wait_seen(self, resource_version: str) -> None:
        """Give it the resourceVersion that a write answered with. A write that the selection leaves out brings no event: after a
        moment the server is asked how far the watch is."""
        version = version_of(resource_version)
        try:
            async with asyncio.timeout(PATIENCE):
                await self._seen.wait(version)
                return
        except TimeoutError:
            pass
        if self.has_synced and self._seen.version < version:
            self._reflector.ask_progress(version)
        await self._seen.wait(version)

    async def wait_gone(self, key: Key, uid: str = "") -> None:
        """After a delete, whose answer has no resourceVersion to wait for: until the object is gone, another one, or marked as
        being deleted."""
        gone = asyncio.Event()

        def look(_: Change[V] | None) -> None:
            stored = self._table.objects.get(key)
            if stored is None or stored.deleting or (uid and stored.uid != uid):
                gone.set()

        leave = self._table.subscribe(look, replay=False)
        try:
            look(None)
            await gone.wait()
        finally:
            leave()

    def _views(self, keys: Iterable[Key]) -> list_of[V]:
        views: list_of[V] = []
        for key in keys:
            try:
                views.append(self._table.objects[key].view)
            except Unreadable:
                continue
        return views


def _words(selection: Selection) -> str:
    parts = {"namespace": selection.namespace, "labels": selection.labels, "fields": selection.fields}
    return " ".join(f"{name}:{value}" for name, value in parts.items() if value)
