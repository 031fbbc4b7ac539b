"""Old history is given up by itself: after some minutes, or sooner where very much of it has gathered."""

from __future__ import annotations

import asyncio
from collections import deque

from herder.api.backoff import doubled
from herder.server.store import Store

EVERY = 30.0
KEEP_SECONDS = 300.0
# However fast things change, no more old versions than this are kept.
KEEP_ROWS = 200_000
# A breath between slices, in which writers get their turn.
PAUSE = 0.01
# After a slice that found no room, and twice as long after the next: what fails takes all writes with it that wait behind it.
FIRST_RETRY = 1.0


class Compaction:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._marks: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._compact_to(self.target(asyncio.get_running_loop().time()))

    def target(self, now: float) -> int:
        """Everything before this revision may go."""
        self._marks.append((now, self._store.revision))
        target = 0
        while self._marks and self._marks[0][0] <= now - KEEP_SECONDS:
            target = self._marks.popleft()[1]
        return max(target, self._store.oldest_worth_keeping(KEEP_ROWS))

    async def _compact_to(self, revision: int) -> None:
        while self._store.compact(revision):
            await asyncio.sleep(PAUSE)
            while self._store.compacting:  # noqa: ASYNC110 - the store does not say when
                await asyncio.sleep(PAUSE)
            if failures := self._store.compaction_failures:
                await asyncio.sleep(doubled(FIRST_RETRY, EVERY, failures - 1))
