"""An engine inside the test's own process: the store commits inline, requests go straight to the router."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from herder.api.registry import KindInfo
from herder.server.housekeeping.own_nodes import OwnNodes
from herder.server.request import ENGINE, Request, Response, Stream, User, parse_query
from herder.server.running import Running
from herder.server.store import Database, InlineWriter, Store
from herder.server.store.writer import ThreadWriter

Json = dict[str, Any]


class StillWorld:
    """Time stands still unless it is moved; ids and suffixes are counted."""

    def __init__(self) -> None:
        self.seconds = 1_750_000_000.0
        self._numbers = itertools.count(1)

    def now(self) -> float:
        return self.seconds

    def random(self) -> float:
        return 0.5

    def uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"

    def suffix(self) -> str:
        return f"{next(self._numbers):05d}"


class Inside:
    def __init__(self, running: Running, world: StillWorld) -> None:
        self.running = running
        self.world = world
        self.router = running.router
        self.store = running.engine.store

    async def ask(self, method: str, path: str, body: Any = None, user: User = ENGINE, **headers: str) -> tuple[int, Json]:
        answer = await self.router.handle(self.request(method, path, body, user, **headers))
        assert isinstance(answer, Response)
        return answer.status, msgspec.json.decode(answer.body)

    async def watch(self, path: str) -> AsyncIterator[Json]:
        answer = await self.router.handle(self.request("GET", path, None))
        assert isinstance(answer, Stream), answer
        async for chunk in answer.chunks():
            for line in chunk.splitlines():
                yield msgspec.json.decode(line)

    def request(self, method: str, path: str, body: Any, user: User = ENGINE, **headers: str) -> Request:
        where, _, query = path.partition("?")
        raw = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        named = {name.replace("_", "-").title(): value for name, value in headers.items()}
        return Request(method=method, path=where, query=parse_query(query), headers=named, body=raw, user=user)


@asynccontextmanager
async def engine_inside(
    folder: Path,
    world: StillWorld | None = None,
    own_nodes: OwnNodes | None = None,
    kinds: Sequence[KindInfo] = (),
    writing_takes_time: bool = False,
) -> AsyncGenerator[Inside]:
    """`kinds` are those of ours that it knows: each takes a moment, and few tests ask for one. `writing_takes_time`: what is
    decided is durable a moment later, as it is outside of tests."""
    database = Database(folder / "herder.db")
    world = world or StillWorld()
    writer = ThreadWriter(database, asyncio.get_running_loop()) if writing_takes_time else InlineWriter(database)
    running = Running(Store(database, writer), world, own_nodes=own_nodes, kinds=kinds)
    await running.start()
    try:
        yield Inside(running, world)
    finally:
        await running.stop()


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
