"""Reads are of what is durable; writes are decided against what is being written; listeners see each step once, in order."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from herder.server.store.database import DELETE, PUT, Database, Row
from herder.server.store.history import CompactedError, History
from herder.server.store.records import ADDED, DELETED, MODIFIED, Change, Record, key_of
from herder.server.store.replaying import Page, Replays, Wanted, page_of
from herder.server.store.tables import Snapshot, Table
from herder.server.store.writer import Job, StorageFullError, Writer

log = structlog.get_logger()

# Of objects that are not as they were, in a list of how it was: more than that are not looked for.
MOST_CHANGED = 200_000
# And of what they were, in one answer: whoever wants more asks for smaller pages.
MOST_OLD_BYTES = 16 * 1024 * 1024
COMPACT_SLICE = 500


class StoreStopped(Exception):
    """The disk failed in a way that leaves open what is on it: the store stops, and reads the truth again when started anew."""


class _Pending(NamedTuple):
    """A write on its way to the disk: what the object will be (None: gone), and who waits for it."""

    change: Change
    future: asyncio.Future[None]
    # Others who wait for the same write, each with a future of their own: one who leaves takes nobody along.
    others: list[asyncio.Future[None]]


class _Superseded(NamedTuple):
    at: int
    revision: int


Listener = Callable[[Change], None]


class Store:
    def __init__(self, database: Database, writer: Writer, reader: Callable[[], Database] | None = None) -> None:
        self._writer = writer
        self._replays = Replays(reader or (lambda: Database(database.path)))
        self._tables: dict[str, Table] = {}
        self._superseded: deque[_Superseded] = deque()
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._compacting = False
        # In a row.
        self.compaction_failures = 0
        self._epoch = 0
        self._failure: BaseException | None = None
        self._stopped = False
        self.path = database.path
        # Why a write was not stored, until `probe` has found that one of some size is: that a smaller one fits says little.
        self.full = ""
        self.on_failure: Callable[[BaseException], None] = lambda _: None
        self.compacted = int(database.meta("compacted") or 0)
        # Whose revisions these are: those of another store mean nothing here.
        self.identity = database.meta("identity") or _new_identity(database)
        self.revision = self._load(database)
        self._last = self.revision
        self.history = History(self.revision)

    def _load(self, database: Database) -> int:
        newest: dict[tuple[str, str], Row] = {}
        revision = 0
        for row in database.rows():
            revision = row.revision
            slot = (row.kind, key_of(row.namespace, row.name))
            before = newest.pop(slot, None)
            if before is not None:
                self._superseded.append(_Superseded(row.revision, before.revision))
            # Deletions count too: what they took away is part of every snapshot from before.
            self.table(row.kind).revision = row.revision
            if row.operation == DELETE:
                self._superseded.append(_Superseded(row.revision, row.revision))
            else:
                newest[slot] = row
        for (kind, key), row in newest.items():
            self.table(kind).load(Record(key, row.revision, row.data))
        # The last write may have been a deletion whose row is compacted away: its revision is used up all the same.
        return max(revision, self.compacted)

    # --- reading: only what is durable -------------------------------------------------------------------------------------------

    def table(self, kind: str) -> Table:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = Table()
        return table

    def get(self, kind: str, key: str) -> Record | None:
        table = self._tables.get(kind)
        return table.records.get(key) if table else None

    def kinds(self) -> list[str]:
        return list(self._tables)

    def count(self) -> int:
        return sum(len(table.records) for table in self._tables.values())

    def scan(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return self.table(kind).scan(prefix, after)

    async def scan_at(self, kind: str, revision: int, prefix: str = "", after: str = "") -> Snapshot:
        """The objects as they were at `revision`; CompactedError when that is too long ago."""
        self.check_kept(revision)
        table, asked, namespace = self.table(kind), revision, prefix.rstrip("/")
        before: dict[str, Record | int | None] = {}
        while revision < self.history.floor and table.revision > asked:
            upto = self.history.floor
            for key, old in await self._replays.first_changes(kind, namespace, revision, upto, MOST_CHANGED):
                before.setdefault(key, old)
            if len(before) > MOST_CHANGED:
                raise CompactedError(asked, upto)
            # Rows that compaction took meanwhile would be missing from what was read.
            self.check_kept(asked)
            revision = upto
        for change in self.history.after(kind, revision):
            before.setdefault(change.record.key, change.previous)
        left = MOST_OLD_BYTES

        async def load(states: dict[int, str]) -> dict[str, Record]:
            nonlocal left
            found = await self._replays.states(states, left)
            left -= sum(len(record.raw) for record in found.values())
            self.check_kept(asked)
            if len(found) < len(states) or left < 0:
                raise CompactedError(asked, self.revision)
            return found

        return Snapshot(table, before, prefix, after, load)

    async def changes_after(self, kind: str, revision: int, upto: int, namespace: str = "", *, with_previous: bool = True) -> Page:
        """The durable changes of one kind behind `revision`, or of one of its namespaces: a page of them, which ends at `upto` or
        before. `with_previous`: each with what the object was before it, where that has to be read."""
        self.check_kept(revision)
        floor = self.history.floor
        if revision >= floor:
            return page_of(self.history.after(kind, revision), upto)
        page = await self._replays.page(Wanted(kind, namespace, revision, with_previous), min(floor, upto))
        self.check_kept(revision)
        return page

    def check_kept(self, revision: int) -> None:
        if revision < self.compacted:
            raise CompactedError(revision, self.compacted)

    # --- writing -----------------------------------------------------------------------------------------------------------------

    def latest(self, kind: str, key: str) -> Record | None:
        """What the next write is decided against: the newest state, durable or on its way to be."""
        pending = self._pending.get((kind, key))
        if pending is None:
            return self.get(kind, key)
        return None if pending.change.kind == DELETED else pending.change.record

    async def all_settled(self, kind: str) -> None:
        """The same for every object of a kind."""
        for table, key in [slot for slot in self._pending if slot[0] == kind]:
            await self.settled(table, key)

    def on_their_way(self, kind: str) -> list[Record]:
        """What objects of a kind will be, of those that are being written: few, however many there are."""
        pending = [one.change for (table, _), one in self._pending.items() if table == kind]
        return [change.record for change in pending if change.kind != DELETED]

    def is_changing(self, kind: str, key: str) -> bool:
        """Whether `get` will soon say something else."""
        return (kind, key) in self._pending

    def newest(self) -> dict[tuple[str, str], Record]:
        """Everything as `latest` would say it."""
        found = {(kind, key): record for kind, table in self._tables.items() for key, record in table.records.items()}
        for slot, pending in self._pending.items():
            if pending.change.kind == DELETED:
                found.pop(slot, None)
            else:
                found[slot] = pending.change.record
        return found

    def reserve(self) -> int:
        """The resourceVersion of the next write. Submit it before anything else is reserved: the log is in this order."""
        self._last += 1
        return self._last

    async def settled(self, kind: str, key: str) -> None:
        """Wait until what `latest` says is durable."""
        pending = self._pending.get((kind, key))
        if pending is not None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            pending.others.append(waiting)
            await waiting

    def put(self, kind: str, record: Record, previous: Record | None) -> asyncio.Future[None]:
        return self._submit(Change(kind, MODIFIED if previous else ADDED, record, previous))

    def remove(self, kind: str, record: Record, previous: Record) -> asyncio.Future[None]:
        """`record` is the last state, with the resourceVersion of its deletion."""
        return self._submit(Change(kind, DELETED, record, previous))

    def _submit(self, change: Change) -> asyncio.Future[None]:
        if self._stopped:
            raise StoreStopped(str(self._failure))
        pending = _Pending(change, asyncio.get_running_loop().create_future(), [])
        self._pending[(change.table, change.record.key)] = pending
        self._writer.submit(Job(self._epoch, lambda outcome: self._committed(pending, outcome), (_row_of(change),)))
        return pending.future

    def replace(self, changes: Sequence[Change], compacted: int, meta: Sequence[tuple[str, str]]) -> asyncio.Future[None]:
        """Many changes that are made together or not at all, and seen together. `compacted`: nobody can go back to before this."""
        if self._stopped:
            raise StoreStopped(str(self._failure))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        all_pending = [_Pending(change, done, []) for change in changes]
        for pending in all_pending:
            self._pending[(pending.change.table, pending.change.record.key)] = pending
        compact = (compacted, ()) if compacted > self.compacted else None

        def committed(outcome: BaseException | None) -> None:
            if outcome is None:
                self.compacted = max(self.compacted, compacted)
            for pending in all_pending:
                self._committed(pending, outcome)
            _settle_one(done, self._error_for(outcome) if outcome is not None else None)

        self._writer.submit(Job(self._epoch, committed, [_row_of(change) for change in changes], compact, meta))
        return done

    async def probe(self, size: int) -> None:
        """Stores so much, and takes it away again. Raises what a write would; others do not notice."""
        for value in ("x" * size, ""):
            if self._stopped:
                raise StoreStopped(str(self._failure))
            tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._writer.submit(
                Job(self._epoch, lambda outcome, tried=tried: self._tried(tried, outcome), meta=(("room", value),), alone=True)
            )
            await tried
        self.full = ""

    def _tried(self, tried: asyncio.Future[None], outcome: BaseException | None) -> None:
        if outcome is not None and not isinstance(outcome, StorageFullError):
            self._failed(outcome)
        _settle_one(tried, self._error_for(outcome) if outcome is not None else None)

    def reserve_after(self, revision: int) -> None:
        """The next write comes behind this one, wherever it was handed out."""
        self._last = max(self._last, revision)

    @property
    def reserved(self) -> int:
        return self._last

    def _committed(self, pending: _Pending, outcome: BaseException | None) -> None:
        if outcome is not None:
            self._failed(outcome)
            _settle(pending, self._error_for(outcome))
            return
        self._forget(pending)
        # Whoever wrote is answered before those who watch are told.
        _settle(pending, None)
        self._apply(pending.change)

    def _forget(self, pending: _Pending) -> None:
        slot = (pending.change.table, pending.change.record.key)
        if self._pending.get(slot) is pending:
            del self._pending[slot]

    def _apply(self, change: Change) -> None:
        self.table(change.table).apply(change)
        self.revision = change.revision
        self.history.add(change)
        if change.previous is not None:
            self._superseded.append(_Superseded(change.revision, change.previous.revision))
        if change.kind == DELETED:
            self._superseded.append(_Superseded(change.revision, change.revision))
        for listener in (*self._listeners.get(change.table, ()), *self._listeners.get("", ())):
            try:
                listener(change)
            except Exception:
                # One who cannot take it must not keep the others, and those who wrote, from hearing.
                log.exception("a listener failed", kind=change.table, key=change.record.key)

    def _failed(self, outcome: BaseException) -> None:
        """Nothing of the batch is stored. What waits behind it may rest on it, so the writer refuses all of that too."""
        if outcome is self._failure:
            return
        self._failure = outcome
        self._epoch += 1
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            _settle(pending, self._error_for(outcome))
        self.full = str(outcome)
        if not isinstance(outcome, StorageFullError):
            self._stopped = True
            self.on_failure(outcome)

    def _error_for(self, outcome: BaseException) -> BaseException:
        return outcome if isinstance(outcome, StorageFullError) else StoreStopped(str(outcome))

    # --- listening ---------------------------------------------------------------------------------------------------------------

    def listen(self, kind: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` for each durable change of a kind ("" for every kind), in order. Returns how to stop that."""
        self._listeners.setdefault(kind, []).append(listener)
        return lambda: self._listeners[kind].remove(listener)

    # --- compaction --------------------------------------------------------------------------------------------------------------

    def compact(self, upto: int) -> bool:
        """Drop one slice of what `upto` makes obsolete. True when there is more to do. Between slices writers get their turn."""
        if self._compacting or self._stopped:
            return False
        obsolete: list[_Superseded] = []
        while self._superseded and self._superseded[0].at <= upto and len(obsolete) < COMPACT_SLICE:
            obsolete.append(self._superseded.popleft())
        if not obsolete:
            return False
        self._compacting = True
        self.compacted = max(self.compacted, upto)
        job = Job(
            self._epoch,
            lambda outcome: self._compaction_done(obsolete, outcome),
            compact=(self.compacted, [one.revision for one in obsolete]),
        )
        self._writer.submit(job)
        return True

    def _compaction_done(self, obsolete: list[_Superseded], outcome: BaseException | None) -> None:
        self._compacting = False
        self.compaction_failures = 0 if outcome is None else self.compaction_failures + 1
        if outcome is not None:
            self._superseded.extendleft(reversed(obsolete))
            self._failed(outcome)

    @property
    def compacting(self) -> bool:
        return self._compacting

    def superseded(self) -> int:
        return len(self._superseded)

    def oldest_worth_keeping(self, rows: int) -> int:
        """The revision behind which no more than `rows` old versions are kept; 0 when there are not so many."""
        surplus = len(self._superseded) - rows
        return self._superseded[surplus - 1].at if surplus > 0 else 0

    def close(self) -> None:
        self._writer.close()


def _settle(pending: _Pending, error: BaseException | None) -> None:
    for future in (pending.future, *pending.others):
        _settle_one(future, error)


def _settle_one(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # whoever asked may be gone: that is no news for the log


def _new_identity(database: Database) -> str:
    identity = secrets.token_hex(16)
    # One that could not be stored lasts until the next start: a restore then takes more care than it must.
    with contextlib.suppress(sqlite3.Error):
        database.set_meta("identity", identity)
    return identity


def _row_of(change: Change) -> Row:
    record = change.record
    previous = change.previous.revision if change.previous else None
    operation = DELETE if change.kind == DELETED else PUT
    return Row(record.revision, previous, operation, change.table, record.namespace, record.name, record.raw)


def open_store(path: Path, make_writer: Callable[[Database], Writer]) -> Store:
    database = Database(path)
    return Store(database, make_writer(database))
