"""API servers are killed under a running cache: nothing is missed, and nothing is told twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from herder.api.core import ConfigMap
from herder.api.world import RealWorld
from herder.kube.cache import Cache, Change, Stored
from herder.kube.client import Client, Selection
from herder.kube.connect import connect
from herder.kube.errors import AlreadyExists, KubeError, NotFound
from herder.kube.resources import CONFIG_MAPS, Key
from tests.engines.engine import Engine
from tests.engines.restartable import Restartable, restartable

pytestmark = pytest.mark.slow
PATIENCE = 90.0
HERE = Selection("default")
OBJECTS = 60


@pytest.fixture(scope="module")
def server(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restartable]:
    """Of the same kind as the engine of the other tests, but nobody else's."""
    with restartable(engine.name, tmp_path_factory.mktemp("restartable")) as made:
        yield made


class Witness:
    """Replays what it is told, and knows when that does not fit."""

    def __init__(self) -> None:
        self.has: dict[Key, Stored[ConfigMap]] = {}
        self.wrong: list[str] = []
        self.said: list[tuple[str, str]] = []

    def __call__(self, change: Change[ConfigMap]) -> None:
        if change.old is not self.has.get(change.key):
            self.wrong.append(f"{change.key}: not the state that was told before")
        if change.new is None:
            self.has.pop(change.key, None)
        else:
            self.has[change.key] = change.new
        self.said.append(("added" if change.old is None else "deleted" if change.new is None else "changed", change.key.name))


@asynccontextmanager
async def client_of(server: Restartable) -> AsyncGenerator[Client]:
    transport = connect(server.engine.kubeconfig, None, "test")
    async with Client(transport, "test") as client:
        yield client


@asynccontextmanager
async def running(cache: Cache[ConfigMap]) -> AsyncGenerator[None]:
    task = asyncio.create_task(cache.run())
    try:
        await asyncio.wait_for(cache.wait_synced(), PATIENCE)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def insist(write: Callable[[], Awaitable[Any]]) -> None:
    """Until it is done, whoever is away meanwhile."""
    while True:
        try:
            await write()
            return
        except (AlreadyExists, NotFound):
            return  # done by an earlier try whose answer was lost
        except KubeError:
            await asyncio.sleep(0.05)


async def write_all(client: Client, prefix: str, progress: list[int]) -> None:
    for number in range(OBJECTS):
        name = f"{prefix}-{number:03d}"
        key = Key("default", name)
        await insist(lambda name=name: client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default"))
        await insist(lambda key=key: client.patch(CONFIG_MAPS, key, {"data": {"changed": "yes"}}))
        if number % 3 == 0:
            await insist(lambda key=key: client.delete(CONFIG_MAPS, key))
        progress.append(number)


async def agree(client: Client, cache: Cache[ConfigMap], witness: Witness, marker: str) -> None:
    made = await client.create(CONFIG_MAPS, {"metadata": {"name": marker}}, "default")
    await asyncio.wait_for(cache.wait_seen(made.metadata.resource_version or ""), PATIENCE)
    served = [_state(one) for one in (await client.list(CONFIG_MAPS, HERE)).items]
    assert [_state(one) for one in cache.list()] == served
    assert [_state(witness.has[key].view) for key in sorted(witness.has)] == served
    assert not witness.wrong


def _state(one: ConfigMap) -> tuple[Any, ...]:
    """Items of a list do not say their kind: only the rest can be compared."""
    return one.metadata, one.data


async def test_writes_before_during_and_after_restarts_are_each_told_once(server: Restartable) -> None:
    witness, progress = Witness(), list[int]()
    async with client_of(server) as client:
        cache = Cache(client, CONFIG_MAPS, HERE, RealWorld())
        cache.subscribe(witness)
        async with running(cache):
            writing = asyncio.create_task(write_all(client, "w", progress))
            for share in (3, 2):
                while len(progress) < OBJECTS // share and not writing.done():  # noqa: ASYNC110 - they are written one by one
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await asyncio.wait_for(writing, PATIENCE)
            await agree(client, cache, witness, "marker-1")
    for number in range(OBJECTS):
        told = [what for what, name in witness.said if name == f"w-{number:03d}"]
        assert told in _histories(server, deleted=number % 3 == 0), f"w-{number:03d}"


def _histories(server: Restartable, *, deleted: bool) -> list[list[str]]:
    """Ours keeps its history over a restart. The real server may have to be listed again: what came between is not told then."""
    if deleted:
        whole, gaps = ["added", "changed", "deleted"], [["added", "deleted"], []]
    else:
        whole, gaps = ["added", "changed"], [["added"]]
    return [whole] if server.engine.name == "embedded" else [whole, *gaps]


async def test_after_lost_history_only_what_differs_is_told(server: Restartable) -> None:
    witness = Witness()
    async with client_of(server) as client:
        cache = Cache(client, CONFIG_MAPS, HERE, RealWorld())
        cache.subscribe(witness)
        for name in ("same", "altered", "gone", "replaced"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
        async with running(cache):
            await agree(client, cache, witness, "marker-2")
        witness.said.clear()
        await client.patch(CONFIG_MAPS, Key("default", "altered"), {"data": {"k": "1"}})
        for name in ("gone", "replaced"):
            await client.delete(CONFIG_MAPS, Key("default", name))
        last = await client.create(CONFIG_MAPS, {"metadata": {"name": "replaced"}}, "default")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.forget_history, int(last.metadata.resource_version or ""))
        await asyncio.to_thread(server.start)
        async with running(cache):
            await agree(client, cache, witness, "marker-3")
    told = [said for said in witness.said if said[1] in ("same", "altered", "gone", "replaced")]
    assert told == [("deleted", "gone"), ("changed", "altered"), ("deleted", "replaced"), ("added", "replaced")]
