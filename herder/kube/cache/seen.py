"""Up to which resourceVersion everything is known, and those who wait for more."""

from __future__ import annotations

import asyncio
import heapq


class Seen:
    def __init__(self) -> None:
        self.version = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    def advance(self, version: int) -> None:
        if version > self.version:
            self.version = version
            if self._waiting:
                self._wake()

    def start_again(self, version: int) -> None:
        """After a list: the server may have gone back, as after a restore from a backup."""
        self.version = version
        self._wake()

    @property
    def awaited(self) -> bool:
        return bool(self._waiting)

    async def wait(self, version: int) -> None:
        if version <= self.version:
            return
        future = asyncio.get_running_loop().create_future()
        self._count += 1
        entry = (version, self._count, future)
        heapq.heappush(self._waiting, entry)
        try:
            await future
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.version:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
