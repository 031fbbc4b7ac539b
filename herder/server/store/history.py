"""The recent past in memory, within a bound; what is older is read from the log on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from herder.server.store.records import Change

MEMORY_BYTES = 64 * 1024 * 1024


class CompactedError(Exception):
    """The asked-for revision is older than what is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


class History:
    """Changes in order, per table. `floor`: every change after it is here."""

    def __init__(self, floor: int, limit: int = MEMORY_BYTES) -> None:
        self.floor = floor
        self._limit = limit
        self._bytes = 0
        self._all: deque[Change] = deque()
        self._tables: dict[str, deque[Change]] = {}

    def add(self, change: Change) -> None:
        self._all.append(change)
        self._tables.setdefault(change.table, deque()).append(change)
        self._bytes += len(change.record.raw)
        while self._bytes > self._limit:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = self._all.popleft()
        self._tables[oldest.table].popleft()
        self._bytes -= len(oldest.record.raw)
        self.floor = oldest.revision

    def after(self, table: str, revision: int) -> list[Change]:
        """Newest first while looking for the place, because most who ask are nearly up to date."""
        changes = self._tables.get(table, ())
        behind = 0
        for change in reversed(changes):
            if change.revision <= revision:
                break
            behind += 1
        return list(_last(changes, behind)) if behind else []


def _last(changes: deque[Change] | tuple[()], count: int) -> Iterator[Change]:
    return islice(changes, len(changes) - count, None)
