"""A store on a real file, with the ways to hurt it that the tests need."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from herder.server.store import Change, Database, InlineWriter, Record, Store, ThreadWriter, Writer
from herder.server.store.database import Row
from herder.server.store.records import key_of

MakeWriter = Callable[[Database], Writer]
Compaction = tuple[int, Sequence[int]]
ROOM_FOR_EVERYTHING = 1_000_000_000


def inline(database: Database) -> Writer:
    return InlineWriter(database)


def threaded(database: Database) -> Writer:
    return ThreadWriter(database, asyncio.get_running_loop())


class BreakableDatabase(Database):
    """The writer's connection, on a disk that can be full (the real SQLITE_FULL) or fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.batches: list[int] = []
        self.fails_before_commit = False
        self.fails_after_commit = False
        self.stored_although_failed: list[Row] = []

    def fill(self) -> None:
        """No page more than there are now."""
        self._connection.execute("PRAGMA max_page_count=1")

    def make_room(self) -> None:
        self._connection.execute(f"PRAGMA max_page_count={ROOM_FOR_EVERYTHING}")

    def revisions(self) -> list[int]:
        return [row.revision for row in self.rows()]

    def current(self) -> dict[tuple[str, str], bytes]:
        rows = self._connection.execute("SELECT kind, namespace, name, data FROM current").fetchall()
        return {(kind, key_of(namespace, name)): data for kind, namespace, name, data in rows}

    def write(self, rows: Sequence[Row], compactions: Sequence[Compaction] = (), meta: Sequence[tuple[str, str]] = ()) -> None:
        self.batches.append(len(rows))
        if self.fails_before_commit:
            raise sqlite3.OperationalError("disk I/O error")
        super().write(rows, compactions, meta)
        if self.fails_after_commit:
            self.stored_although_failed = list(rows)
            raise sqlite3.OperationalError("disk I/O error")


class Seen(NamedTuple):
    """What a listener was told, or should have been."""

    revision: int
    table: str
    kind: str
    key: str
    raw: bytes
    before: bytes | None


def seen(change: Change) -> Seen:
    before = change.previous.raw if change.previous else None
    return Seen(change.revision, change.table, change.kind, change.record.key, change.record.raw, before)


class Rig:
    """One opened store. Everything is called from a running event loop."""

    def __init__(self, path: Path, make_writer: MakeWriter) -> None:
        self.database = self.make_database(path)
        self.store = Store(self.database, make_writer(self.database))
        self.told: list[Seen] = []
        self.last_revision = 0
        self.last_raw = b""
        self.store.listen("", lambda change: self.told.append(seen(change)))

    def make_database(self, path: Path) -> BreakableDatabase:
        return BreakableDatabase(path)

    def put(self, table: str, namespace: str, name: str, *, size: int = 10) -> "asyncio.Future[None]":
        """Create or update, decided against the newest state as the server does it."""
        key = key_of(namespace, name)
        previous = self.store.latest(table, key)
        return self.store.put(table, self._record(namespace, name, size), previous)

    def remove(self, table: str, namespace: str, name: str) -> "asyncio.Future[None]":
        previous = self.store.latest(table, key_of(namespace, name))
        assert previous is not None
        return self.store.remove(table, self._record(namespace, name, 10), previous)

    def _record(self, namespace: str, name: str, size: int) -> Record:
        self.last_revision = self.store.reserve()
        self.last_raw = raw_of(namespace, name, self.last_revision, size)
        return Record(key_of(namespace, name), self.last_revision, self.last_raw)

    def contents(self, table: str) -> dict[str, bytes]:
        return {record.key: record.raw for record in self.store.scan(table)}

    async def contents_at(self, table: str, revision: int) -> dict[str, bytes]:
        return {record.key: record.raw for record in (await (await self.store.scan_at(table, revision)).read())[0]}

    async def history(self, table: str, after: int) -> list[Seen]:
        found: list[Seen] = []
        upto = self.store.revision
        while after < upto:
            page = await self.store.changes_after(table, after, upto)
            found += [seen(change) for change in page.changes]
            after = page.end
        return found

    async def compact_all(self, upto: int) -> None:
        while self.store.compact(upto):
            await self.compacted()

    async def compacted(self) -> None:
        """Until the slice that is under way is done, one way or the other."""
        while self.store.compacting:  # noqa: ASYNC110 (the store does not say when; its callers look again)
            await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.to_thread(self.store.close)


def raw_of(namespace: str, name: str, revision: int, size: int) -> bytes:
    metadata: dict[str, Any] = {"name": name, "resourceVersion": str(revision)}
    if namespace:
        metadata["namespace"] = namespace
    return msgspec.json.encode({"metadata": metadata, "data": {"filler": "x" * size}})


def copy_as_if_killed(path: Path, to: Path) -> Path:
    """What a killed process leaves: the file and its write-ahead log, of which nothing was tidied up."""
    to.mkdir()
    for file in (path, path.with_name(f"{path.name}-wal")):
        if file.exists():
            shutil.copy(file, to / file.name)
    return to / path.name


async def outcomes(futures: Sequence["asyncio.Future[None]"]) -> list[BaseException | None]:
    return await asyncio.gather(*futures, return_exceptions=True)
