"""A queue of names and one worker: level-triggered, nothing twice at the same time, errors tried again later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from herder.api.backoff import doubled
from herder.server.status import ApiError

Key = TypeVar("Key")
FIRST_DELAY = 0.05
LONGEST_DELAY = 30.0
TRIES_UNTIL_MISSED = 3

log = structlog.get_logger()


class Worker(Generic[Key]):
    def __init__(self, name: str, work: Callable[[Key], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._waiting: dict[Key, None] = {}
        self._failures: dict[Key, int] = {}
        # What is looked at again because time alone changes it, and when.
        self._later: dict[Key, float] = {}
        self._ready = asyncio.Event()

    def add(self, key: Key) -> None:
        self._waiting[key] = None
        self._ready.set()

    def add_later(self, key: Key, seconds: float) -> None:
        """Once, at the earliest of the times asked for."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(seconds, 0.0)
        if key in self._later and self._later[key] <= at:
            return
        self._later[key] = at

        def due() -> None:
            if self._later.get(key) == at:
                del self._later[key]
                self.add(key)

        loop.call_at(at, due)

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._one(key)
                # One key never keeps the loop from requests, however many there are.
                await asyncio.sleep(0)
            self._ready.clear()

    async def _one(self, key: Key) -> None:
        try:
            await self._work(key)
            self._failures.pop(key, None)
        except Exception as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = doubled(FIRST_DELAY, LONGEST_DELAY, failures)
            # What was there when we looked may be gone when we write: the next look sees that.
            gone = isinstance(error, ApiError) and error.code == 404 and failures <= TRIES_UNTIL_MISSED
            tell = log.info if gone else log.warning
            tell("housekeeping failed, will try again", work=self._name, key=str(key), error=str(error), seconds=delay)
            asyncio.get_running_loop().call_later(delay, self.add, key)
