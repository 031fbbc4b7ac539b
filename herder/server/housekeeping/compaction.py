"""Old history is given up by itself: after some minutes, or sooner where very much of it has gathered."""

from __future__ import annotations

import asyncio
from collections import deque

from herder.server.engine import Engine

EVERY = 30.0
KEEP_SECONDS = 300.0
# However fast things change, no more old versions than this are kept.
KEEP_ROWS = 200_000
# A breath between slices, in which writers get their turn.
PAUSE = 0.01


class Compaction:
    def __init__(self, engine: Engine) -> None:
        self._store = engine.store
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
        while self._store.compacting or self._store.compact(revision):  # noqa: ASYNC110 - the pause is the point
            await asyncio.sleep(PAUSE)
