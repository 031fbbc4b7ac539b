"""Whether anything can be stored: found out by storing something, and only where there is a reason to doubt it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from herder.server.store.store import Store, StoreStopped
from herder.server.store.writer import StorageFullError

# With so much left nobody doubts it. Less may still be enough: the log is written over again and again.
PLENTY = 8 * 1024 * 1024
# More than most objects have.
SIZE = 256 * 1024
PATIENCE = 5.0
# Whoever asks may be anybody: the disk is not written to each time.
AGAIN_AFTER = 1.0


class Room:
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._problem = ""
        self._next = float("-inf")
        self._trying = asyncio.Lock()

    async def problem(self) -> str:
        """Why nothing can be stored; empty where something can."""
        async with self._trying:
            if not self._is_doubtful():
                self._problem = ""
            elif self._clock() >= self._next:
                self._problem = await self._try()
                self._next = self._clock() + AGAIN_AFTER
            return self._problem

    def _is_doubtful(self) -> bool:
        if self._problem or self._store.full:
            return True
        try:
            state = os.statvfs(self._store.path.parent)
        except OSError:
            return True
        return state.f_bavail * state.f_frsize < PLENTY

    async def _try(self) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.probe(SIZE)
        except TimeoutError:
            return f"nothing was stored within {PATIENCE:g} s"
        except (StorageFullError, StoreStopped) as error:
            return str(error)
        return ""
