"""The cache on both engines: what it shows, what it tells, and that it knows when it has caught up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from herder.api.core import ConfigMap
from herder.api.world import RealWorld
from herder.kube.cache import BY_LABEL, BY_NODE, Cache, Caches, Change
from herder.kube.client import Client, Selection
from herder.kube.connect import connect
from herder.kube.resources import CONFIG_MAPS, PODS, Key
from tests.engines.engine import Engine

PATIENCE = 30.0


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with Client(connect(engine.kubeconfig, None, "test"), "test") as connected:
        yield connected


@asynccontextmanager
async def running(client: Client, selection: Selection) -> AsyncGenerator[Cache[ConfigMap]]:
    cache = Cache(client, CONFIG_MAPS, selection, RealWorld())
    task = asyncio.create_task(cache.run())
    try:
        await asyncio.wait_for(cache.wait_synced(), PATIENCE)
        yield cache
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def create(client: Client, namespace: str, name: str, **labels: str) -> str:
    made = await client.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, namespace)
    return made.metadata.resource_version or ""


async def seen(cache: Cache[ConfigMap], version: str) -> None:
    await asyncio.wait_for(cache.wait_seen(version), PATIENCE)


async def test_a_write_is_shown_once_it_is_seen(client: Client, namespace: str) -> None:
    async with running(client, Selection(namespace)) as cache:
        cache.add_index(BY_LABEL)
        await seen(cache, await create(client, namespace, "a", colour="red"))
        shown = cache.get(Key(namespace, "a"))
        assert shown is not None and shown.labels == {"colour": "red"}
        assert shown == await client.get(CONFIG_MAPS, Key(namespace, "a"))
        changed = await client.patch(CONFIG_MAPS, Key(namespace, "a"), {"metadata": {"labels": {"colour": "blue"}}})
        await seen(cache, changed.metadata.resource_version or "")
        assert (cache.keys_by(BY_LABEL, "colour=red"), cache.keys_by(BY_LABEL, "colour=blue")) == ((), (Key(namespace, "a"),))
        await client.delete(CONFIG_MAPS, Key(namespace, "a"))
        await asyncio.wait_for(cache.wait_gone(Key(namespace, "a"), shown.uid), PATIENCE)
        assert cache.get(Key(namespace, "a")) is None


async def test_each_write_is_told_once_and_in_order(client: Client, namespace: str) -> None:
    told: list[tuple[str | None, str | None]] = []

    def note(change: Change[ConfigMap]) -> None:
        if change.key.name == "a":
            told.append(tuple(one and str(one.version) for one in (change.old, change.new)))  # pyright: ignore[reportArgumentType]

    async with running(client, Selection(namespace)) as cache:
        cache.subscribe(note)
        versions = [await create(client, namespace, "a")]
        for number in range(20):
            changed = await client.patch(CONFIG_MAPS, Key(namespace, "a"), {"data": {"n": str(number)}})
            versions.append(changed.metadata.resource_version or "")
        await client.delete(CONFIG_MAPS, Key(namespace, "a"))
        await asyncio.wait_for(cache.wait_gone(Key(namespace, "a")), PATIENCE)
        assert told == list(zip([None, *versions], [*versions, None], strict=True))


@pytest.mark.slow
async def test_a_write_that_the_selection_leaves_out_is_seen_within_seconds(client: Client, namespace: str) -> None:
    async with running(client, Selection(namespace, labels="colour=red")) as cache:
        await seen(cache, await create(client, namespace, "a", colour="red"))
        await seen(cache, await create(client, namespace, "b", colour="blue"))
        assert cache.keys() == (Key(namespace, "a"),)


@pytest.mark.slow
async def test_a_second_cache_of_many_objects_has_them_all(client: Client, namespace: str) -> None:
    names = [f"m-{number:03d}" for number in range(120)]
    async with running(client, Selection(namespace)) as cache:
        versions = await asyncio.gather(*(create(client, namespace, name) for name in names))
        await seen(cache, max(versions, key=int))
        async with running(client, Selection(namespace)) as second:
            assert second.keys() == cache.keys()
            assert [second.raw(key) for key in second.keys()] == [cache.raw(key) for key in cache.keys()]  # noqa: SIM118


async def test_pods_are_found_by_node(client: Client, namespace: str) -> None:
    spec = {"nodeName": "cache-node", "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
    made = await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace)
    caches = Caches(client, RealWorld())
    pods = caches.of(PODS, Selection(namespace))
    pods.add_index(BY_NODE)
    task = asyncio.create_task(caches.run())
    try:
        await asyncio.wait_for(pods.wait_seen(made.metadata.resource_version or ""), PATIENCE)
        assert pods.keys_by(BY_NODE, "cache-node") == (Key(namespace, "p"),)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await client.delete(PODS, Key(namespace, "p"), grace_period_seconds=0)
