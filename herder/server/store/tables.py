"""The current objects of one kind, in key order, and how they were a moment ago."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Awaitable, Callable, Iterator, Mapping

from herder.server.store.records import DELETED, Change, Record


class Table:
    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.revision = 0
        self._keys: list[str] = []
        self._sorted = True

    def load(self, record: Record) -> None:
        """While starting: order is made once, at the first look."""
        self.records[record.key] = record
        self._sorted = False

    def apply(self, change: Change) -> None:
        key = change.record.key
        if change.kind == DELETED:
            del self.records[key]
            if self._sorted:
                self._keys.pop(bisect_left(self._keys, key))
        else:
            if key not in self.records and self._sorted:
                insort(self._keys, key)
            self.records[key] = change.record
        self.revision = change.revision

    def keys(self, prefix: str = "", after: str = "") -> list[str]:
        """Keys that start with `prefix`, behind `after`."""
        if not self._sorted:
            self._keys = sorted(self.records)
            self._sorted = True
        low = bisect_left(self._keys, prefix) if prefix else 0
        if after:
            low = max(low, bisect_right(self._keys, after))
        high = bisect_left(self._keys, _behind(prefix)) if prefix else len(self._keys)
        return self._keys[low:high]

    def scan(self, prefix: str = "", after: str = "") -> Iterator[Record]:
        records = self.records
        return (records[key] for key in self.keys(prefix, after))


def _behind(prefix: str) -> str:
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


# Old states are read so many at a time.
BATCH = 50
Load = Callable[[dict[int, str]], Awaitable[dict[str, Record]]]


class Snapshot:
    """A table as it was before some changes. What has not changed since is shared; the rest is read while it is gone through."""

    def __init__(self, table: Table, before: Mapping[str, Record | int | None], prefix: str, after: str, load: Load) -> None:
        """`before`: what objects were, as a record or as its revision, by key; None where there was none. `load` reads records by
        their revisions, of which it is given the keys."""
        gone = [key for key, state in before.items() if state is not None and key.startswith(prefix) and key > after]
        keys = sorted(key for key in {*table.keys(prefix, after), *gone} if before.get(key, 0) is not None)
        self._states: dict[str, Record | int] = {key: before.get(key) or table.records[key] for key in keys}
        self._keys = keys
        self._load = load

    async def read(self, matches: Callable[[Record], bool] | None = None, limit: int | None = None) -> tuple[list[Record], int]:
        """The first so many that match, and how many keys come from the next one on: 0 where there is no more."""
        found: list[Record] = []
        keys = self._keys if matches is not None else self._keys[:limit]
        for start in range(0, len(keys), BATCH):
            for number, record in enumerate(await self._batch(keys[start : start + BATCH]), start):
                if matches is not None and not matches(record):
                    continue
                if len(found) == limit:
                    return found, len(keys) - number
                found.append(record)
        return found, len(self._keys) - len(keys)

    async def _batch(self, keys: list[str]) -> list[Record]:
        states = {key: self._states[key] for key in keys}
        old = {state: key for key, state in states.items() if isinstance(state, int)}
        loaded = await self._load(old) if old else {}
        return [state if isinstance(state, Record) else loaded[key] for key, state in states.items()]
