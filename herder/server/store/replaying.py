"""History that is no longer in memory, read from the log on disk: in pages, few at a time, and once for all who ask for the same.

A page is bounded in bytes as well as in rows: one object of a megabyte that was changed a thousand times is a gigabyte of history.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from herder.server.store.database import DELETE, Database, Replay
from herder.server.store.records import ADDED, DELETED, MODIFIED, Change, Record, key_of

PAGE_BYTES = 1024 * 1024
PAGE_ROWS = 1000
# Clients come back in herds, and then all ask for the same.
KEPT_BYTES = 16 * 1024 * 1024
MOST_READERS = 2


class Wanted(NamedTuple):
    """Which history: of a kind, of a namespace ("" for all), behind a revision; with what was there before each, or without."""

    kind: str
    namespace: str
    after: int
    with_previous: bool


class Page(NamedTuple):
    changes: list[Change]
    # Nothing is missing up to here.
    end: int
    size: int = 0


class Replays:
    def __init__(self, open_reader: Callable[[], Database]) -> None:
        self._open_reader = open_reader
        self._readers = asyncio.Semaphore(MOST_READERS)
        self._kept: OrderedDict[Wanted, Page] = OrderedDict()
        self._bytes = 0
        self._reading: dict[Wanted, asyncio.Future[Page]] = {}

    async def page(self, wanted: Wanted, upto: int) -> Page:
        """The next page of history up to `upto`. What compaction takes meanwhile is for the caller to notice."""
        kept = self._kept.get(wanted)
        if kept is not None:
            self._kept.move_to_end(wanted)
            return kept
        reading = self._reading.get(wanted)
        if reading is None:
            reading = self._reading[wanted] = asyncio.ensure_future(self._read(wanted, upto))
            reading.add_done_callback(lambda _: self._reading.pop(wanted, None))
        # Whoever leaves does not take it from the others.
        return await asyncio.shield(reading)

    async def _read(self, wanted: Wanted, upto: int) -> Page:
        async with self._readers:
            page = await asyncio.to_thread(self._read_page, wanted, upto)
        self._keep(wanted, page)
        return page

    def _read_page(self, wanted: Wanted, upto: int) -> Page:
        reader = self._open_reader()
        try:
            rows = reader.replay(*wanted, upto, PAGE_ROWS, PAGE_BYTES)
        finally:
            reader.close()
        size = sum(len(replay.row.data) + len(replay.before or b"") for replay in rows.found)
        return Page([_change_of(replay) for replay in rows.found], rows.end, size)

    def _keep(self, wanted: Wanted, page: Page) -> None:
        self._kept[wanted] = page
        self._bytes += page.size
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1].size
        while len(self._kept) > PAGE_ROWS:
            self._bytes -= self._kept.popitem(last=False)[1].size

    async def first_changes(self, kind: str, namespace: str, after: int, upto: int, most: int) -> list[tuple[str, int | None]]:
        """The objects that changed, by key, and the revision that each had before; one more than `most` at most."""

        def read() -> list[tuple[str, int | None]]:
            reader = self._open_reader()
            try:
                return [(key_of(*row[:2]), row[2]) for row in reader.first_changes(kind, namespace, after, upto, most + 1)]
            finally:
                reader.close()

        async with self._readers:
            return await asyncio.to_thread(read)

    async def states(self, keys: dict[int, str], most: int) -> dict[str, Record]:
        """Old states by their revisions, as far as they are still there and within so many bytes."""

        def read() -> dict[str, Record]:
            reader = self._open_reader()
            try:
                return {keys[revision]: Record(keys[revision], revision, raw) for revision, raw in reader.states(list(keys), most)}
            finally:
                reader.close()

        async with self._readers:
            return await asyncio.to_thread(read)


def page_of(changes: Iterable[Change], upto: int) -> Page:
    """Of what is still in memory: as much as fits into a page."""
    taken: list[Change] = []
    size = 0
    for change in changes:
        if change.revision > upto:
            break
        taken.append(change)
        size += len(change.record.raw)
        if size >= PAGE_BYTES or len(taken) >= PAGE_ROWS:
            return Page(taken, change.revision, size)
    return Page(taken, upto, size)


def _change_of(replay: Replay) -> Change:
    row = replay.row
    key = key_of(row.namespace, row.name)
    previous = Record(key, row.previous, replay.before) if row.previous is not None and replay.before is not None else None
    kind = DELETED if row.operation == DELETE else MODIFIED if row.previous is not None else ADDED
    return Change(row.kind, kind, Record(key, row.revision, row.data), previous)
