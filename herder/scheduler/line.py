"""The pods that are to be looked at: the most important first, then the oldest. Those that failed wait a little before."""

from __future__ import annotations

import asyncio
import heapq
import itertools

import msgspec

from herder.api.backoff import doubled
from herder.kube.resources import Key

# kube-scheduler's: a second, then twice as long each time, at most ten.
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 10.0


class Rank(msgspec.Struct, frozen=True, order=True):
    """Less is earlier. `priority` with its sign turned."""

    priority: int
    created: float
    arrival: int


class Line:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[Rank, Key]] = []
        self._ranks: dict[Key, Rank] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._tried: dict[Key, tuple[int, float]] = {}
        self._arrivals = itertools.count()
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, key: Key) -> bool:
        return key in self._ranks or key in self._timers

    def add(self, key: Key, priority: int, created: float) -> None:
        self._stop_timer(key)
        if key not in self._ranks:
            rank = self._ranks[key] = Rank(-priority, created, next(self._arrivals))
            heapq.heappush(self._heap, (rank, key))
            self._news.set()

    def add_later(self, key: Key, priority: int, created: float) -> None:
        """Once its backoff since the last attempt is over."""
        failures, last = self._tried.get(key, (0, 0.0))
        due = last + doubled(FIRST_BACKOFF, LONGEST_BACKOFF, failures - 1) if failures else 0.0
        if due <= self._loop.time():
            self.add(key, priority, created)
        elif key not in self:
            self._timers[key] = self._loop.call_at(due, self.add, key, priority, created)

    def failed(self, key: Key) -> None:
        self._tried[key] = (self._tried.get(key, (0, 0.0))[0] + 1, self._loop.time())

    def remove(self, key: Key) -> None:
        """What is in the heap is passed over when its turn comes."""
        self._ranks.pop(key, None)
        self._stop_timer(key)

    def forget(self, key: Key) -> None:
        """It is placed or gone: whoever comes under this name is new."""
        self.remove(key)
        self._tried.pop(key, None)

    async def get(self) -> Key:
        while True:
            while self._heap:
                rank, key = heapq.heappop(self._heap)
                if self._ranks.get(key) is rank:
                    del self._ranks[key]
                    return key
            self._news.clear()
            await self._news.wait()

    def _stop_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
