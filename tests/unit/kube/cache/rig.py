"""An engine in this process, a cache of its ConfigMaps, and a witness of everything that the cache says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.core import ConfigMap
from herder.app.inside import InsideTransport
from herder.kube.cache import BY_LABEL, BY_NAMESPACE, BY_OWNER, Cache, CacheMetrics, Change, Stored
from herder.kube.client import EVERYTHING, Client, Selection
from herder.kube.resources import CONFIG_MAPS, Key
from herder.server.request import ENGINE
from tests.unit.kube.cache.faults import Faults
from tests.unit.server.inside import Inside, StillWorld


class Runs(Protocol):
    async def run(self) -> None: ...


class Witness:
    """Replays the changes: what it has must always be what the cache shows, and each change must follow from the one before."""

    def __init__(self) -> None:
        self.has: dict[Key, Stored[ConfigMap]] = {}
        self.said: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.newest: dict[Key, int] = {}

    def __call__(self, change: Change[ConfigMap]) -> None:
        """A cache goes on when a handler fails: what is wrong is kept for the end of the test."""
        old, new = change.old, change.new
        if old is not self.has.get(change.key):
            self.wrong.append(f"{change.key}: not the state that was told before")
        if old is not None and new is not None and (old.uid != new.uid or old.version >= new.version):
            self.wrong.append(f"{change.key}: from {old.uid} {old.version} to {new.uid} {new.version}")
        if new is not None and new.version <= self.newest.get(change.key, 0):
            self.wrong.append(f"{change.key}: {new.version} is not news")
        if new is None:
            del self.has[change.key]
        else:
            self.has[change.key] = new
            self.newest[change.key] = new.version
        self.said.append(("added" if old is None else "deleted" if new is None else "changed", change.key.name))


class Rig:
    def __init__(self, inside: Inside, selection: Selection = EVERYTHING) -> None:
        self.inside = inside
        self.direct = Client(InsideTransport(inside.router, "test", user=ENGINE), "test")
        self.faults = Faults(InsideTransport(inside.router, "cache", user=ENGINE))
        self.registry = CollectorRegistry()
        metrics = CacheMetrics(self.registry)
        self.cache = Cache(Client(self.faults, "cache"), CONFIG_MAPS, selection, StillWorld(), metrics)
        for index in (BY_LABEL, BY_NAMESPACE, BY_OWNER):
            self.cache.add_index(index)
        self.witness = Witness()
        self.cache.subscribe(self.witness)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.cache.run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def create(self, name: str, **data: str) -> str:
        """The resourceVersion."""
        document: dict[str, Any] = {"metadata": {"name": name, "labels": {"name": name}}, "data": data}
        return _version(await self.direct.create(CONFIG_MAPS, document, "default"))

    async def change(self, name: str, **data: str) -> str:
        return _version(await self.direct.patch(CONFIG_MAPS, Key("default", name), {"data": data}))

    async def delete(self, name: str) -> None:
        await self.direct.delete(CONFIG_MAPS, Key("default", name))

    def forget_history(self) -> None:
        """As after five minutes: who was away has to list again."""
        while self.inside.store.compact(self.inside.store.revision):
            pass

    def value(self, metric: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(metric, {"resource": "configmaps", "selection": "", **labels})

    def registry_of_its_own(self) -> CollectorRegistry:
        self._other = CollectorRegistry()
        return self._other

    def other_value(self, metric: str) -> float | None:
        return self._other.get_sample_value(metric, {"resource": "configmaps", "selection": ""})

    @asynccontextmanager
    async def running(self, what: Runs) -> AsyncGenerator[None]:
        task = asyncio.create_task(what.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def until(self, holds: Callable[[], bool]) -> None:
        """Virtual seconds cost nothing."""
        while not holds():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(1)

    async def caught_up(self) -> None:
        """Until the cache has seen a write of this very moment."""
        number = self.inside.store.revision
        await self.cache.wait_seen(await self.create(f"marker-{number}"))

    def check(self) -> None:
        """The cache, the witness and the indexes have what the server has."""
        assert not self.witness.wrong
        records = self.inside.store.table("configmaps").records
        expected = {Key(*key.split("/", 1)): record.document() for key, record in records.items()}
        keys = self.cache.keys()
        assert {key: msgspec.json.decode(self.cache.raw(key) or b"null") for key in keys} == expected
        assert {key: msgspec.json.decode(stored.raw) for key, stored in self.witness.has.items()} == expected
        assert all(self.cache.keys_by(BY_LABEL, f"name={key.name}") == (key,) for key in expected)
        assert set(self.cache.keys_by(BY_NAMESPACE, "default")) == set(expected)


def _version(view: ConfigMap) -> str:
    return view.metadata.resource_version or ""


@asynccontextmanager
async def rig(inside: Inside, selection: Selection = EVERYTHING) -> AsyncGenerator[Rig]:
    """The engine is shared: what a test made goes with it."""
    made = Rig(inside, selection)
    try:
        yield made
    finally:
        await made.stop()
        for one in (await made.direct.list(CONFIG_MAPS)).items:
            await made.direct.delete(CONFIG_MAPS, Key(one.namespace, one.name))
