"""The current objects of one kind, in key order, and how they were a moment ago."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

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


def scan_as_of(table: Table, later: Iterable[Change], prefix: str = "", after: str = "") -> Iterator[Record]:
    """The table as it was before the changes in `later` (oldest first) were made."""
    before: dict[str, Record | None] = {}
    for change in later:
        before.setdefault(change.record.key, change.previous)
    gone = [key for key, record in before.items() if record is not None and key.startswith(prefix) and key > after]
    for key in sorted({*table.keys(prefix, after), *gone}):
        record = before[key] if key in before else table.records[key]
        if record is not None:
            yield record
