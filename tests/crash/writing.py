"""Clients that write all the time and keep book: what was acknowledged, and what became of that which was not."""

import asyncio
import random
from typing import Any, NamedTuple

import aiohttp

from tests.engines.api import Api, Reply
from tests.engines.resources import CONFIG_MAPS

NAMESPACE = "default"
LOST = (aiohttp.ClientError, TimeoutError, OSError)


class Applied(NamedTuple):
    """One step in the life of one object. `revision` is None where no answer has told it."""

    kind: str
    value: str
    revision: int | None


class Book:
    """What all writers know together."""

    def __init__(self) -> None:
        self.steps: dict[str, list[Applied]] = {}
        # The last that was asked for and not yet answered, by object.
        self.attempts: dict[str, tuple[str, str]] = {}
        self.newest = 0
        self.acknowledged = 0
        self.unanswered = 0
        self.unanswered_but_applied = 0

    async def more(self, count: int, patience: float = 10) -> None:
        """Until so many more are acknowledged."""
        wanted = self.acknowledged + count
        async with asyncio.timeout(patience):
            while self.acknowledged < wanted:  # noqa: ASYNC110 (a few looks are simpler than an event per write)
                await asyncio.sleep(0.002)

    def revised(self, revision: int, at_least: int) -> None:
        assert revision > at_least, f"resourceVersion {revision} was given out after {at_least}"
        self.newest = max(self.newest, revision)


def body_of(name: str, value: str) -> dict[str, Any]:
    """The value at both ends of something larger: half a write would show."""
    return {"metadata": {"name": name}, "data": {"a": value, "filler": value[-1:] * 6000, "z": value}}


def value_of(document: dict[str, Any]) -> str:
    data = document["data"]
    assert data["a"] == data["z"] and data["filler"] == data["a"][-1:] * 6000, "half a write"
    return data["a"]


class WritingClient:
    """The only one who writes its objects, so it always knows how they should be."""

    def __init__(self, api: Api, book: Book, number: int) -> None:
        self._api = api
        self._book = book
        self._random = random.Random(number)
        self._number = number
        self._count = 0
        self._now: dict[str, str | None] = {f"w{number}-{index}": None for index in range(4)}

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            lost = await self._step()
            if lost is not None:
                self._book.unanswered += 1
                await self._find_out(*lost)

    async def run_until_lost(self) -> None:
        while await self._step() is None:
            pass

    async def _step(self) -> tuple[str, str, str] | None:
        """One write. What it was when there is no answer to it."""
        name = self._random.choice(list(self._now))
        self._count += 1
        value = f"{self._number}-{self._count}"
        kind = self._choose(name)
        before = self._book.newest
        self._book.attempts[name] = kind, value
        try:
            reply = await self._send(kind, name, value)
        except LOST:
            return kind, name, value
        self._acknowledge(kind, name, value, reply, before)
        del self._book.attempts[name]
        return None

    def _choose(self, name: str) -> str:
        if self._now[name] is None:
            return "ADDED"
        return "DELETED" if self._random.random() < 0.25 else "MODIFIED"

    async def _send(self, kind: str, name: str, value: str) -> Reply:
        if kind == "ADDED":
            return await self._api.create(CONFIG_MAPS, body_of(name, value), NAMESPACE)
        if kind == "DELETED":
            return await self._api.delete(CONFIG_MAPS, name, NAMESPACE)
        return await self._api.update(CONFIG_MAPS, body_of(name, value), NAMESPACE)

    def _acknowledge(self, kind: str, name: str, value: str, reply: Reply, before: int) -> None:
        # The HTTP client sends a DELETE again by itself when a connection that it kept breaks; then the second finds nothing.
        if not (kind == "DELETED" and reply.code == 404):
            assert reply.code in (200, 201), f"{kind} {name}: {reply.code} {reply.raw[:500]!r}"
        self._book.acknowledged += 1
        revision = None
        if kind != "DELETED":
            revision = int(reply.body["metadata"]["resourceVersion"])
            self._book.revised(revision, before)
        self._apply(kind, name, value, revision)

    def _apply(self, kind: str, name: str, value: str, revision: int | None) -> None:
        self._now[name] = None if kind == "DELETED" else value
        self._book.steps.setdefault(name, []).append(Applied(kind, "" if kind == "DELETED" else value, revision))

    async def _find_out(self, kind: str, name: str, value: str) -> None:
        """Without an answer it may or may not have happened, but nothing else may have."""
        found = await self._read(name)
        wanted = None if kind == "DELETED" else value
        assert found in (self._now[name], wanted), f"{name} is {found}: it was {self._now[name]}, and {kind} {wanted} was asked for"
        if found == wanted:
            self._book.unanswered_but_applied += 1
            self._apply(kind, name, value, None)

    async def _read(self, name: str) -> str | None:
        while True:
            try:
                reply = await self._api.get(CONFIG_MAPS, name, NAMESPACE)
            except LOST:
                await asyncio.sleep(0.01)
                continue
            return None if reply.code == 404 else value_of(reply.ok)
