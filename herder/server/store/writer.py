"""Who makes writes durable: a thread with group commit, or the caller itself (in a simulation)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from herder.kit.tasks import keep_thread
from herder.server.store.database import Compaction, Database, Row

PASSIVE_AT = 4 * 1024 * 1024
TRUNCATE_AT = 128 * 1024 * 1024


class StorageFullError(Exception):
    """The disk is full: nothing of this write was stored."""


# What became of a batch: None when it is durable, else why not.
Committed = Callable[[BaseException | None], None]


class Job:
    """One step for the writer: rows to append together, or a slice of compaction. `done` runs where the store lives.

    `epoch` counts the failures that the store knew of when it decided on this step. A step from before a failure may rest on a
    write that was never stored, so the writer refuses it. One that is `alone` is part of no batch and rests on nothing: whether it
    fails is its own affair.
    """

    __slots__ = ("alone", "compact", "done", "epoch", "meta", "rows")

    def __init__(
        self,
        epoch: int,
        done: Committed,
        rows: Sequence[Row] = (),
        compact: Compaction | None = None,
        meta: Sequence[tuple[str, str]] = (),
        *,
        alone: bool = False,
    ) -> None:
        self.epoch = epoch
        self.done = done
        self.rows = rows
        self.compact = compact
        self.meta = meta
        self.alone = alone


class Writer(Protocol):
    def submit(self, job: Job) -> None: ...

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        ...


def run_batch(database: Database, batch: Sequence[Job]) -> BaseException | None:
    """The whole batch in one transaction, so that one fsync serves all of them."""
    try:
        database.write(
            [row for job in batch for row in job.rows],
            [job.compact for job in batch if job.compact],
            [pair for job in batch for pair in job.meta],
        )
    except sqlite3.Error as error:
        if _is_full(error):
            return StorageFullError("the disk of the data directory is full: nothing was stored")
        return error
    except Exception as error:
        # Whatever it is: everyone who waits is told, and the writer's thread does not end without a word.
        return error
    return None


def _is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


class Batches:
    """Runs batches one after another; after a failure, only steps that were decided in knowledge of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._epoch = 0
        self._failure: BaseException | None = None

    def run(self, batch: Sequence[Job]) -> list[tuple[Job, BaseException | None]]:
        together = [job for job in batch if not job.alone]
        fresh = [job for job in together if job.epoch == self._epoch]
        outcomes: list[tuple[Job, BaseException | None]] = [(job, self._failure) for job in together if job.epoch != self._epoch]
        if fresh:
            outcome = run_batch(self._database, fresh)
            if outcome is not None:
                self._epoch += 1
                self._failure = outcome
            outcomes += [(job, outcome) for job in fresh]
        if len(together) < len(batch):
            outcomes += [(job, run_batch(self._database, [job])) for job in batch if job.alone]
        return outcomes


class InlineWriter:
    """Commits before `submit` returns. For simulations, where a thread would escape the virtual clock."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batches = Batches(database)

    def submit(self, job: Job) -> None:
        _finish(self._batches.run([job]))

    def close(self) -> None:
        self._database.close()


class ThreadWriter:
    """Takes whatever has queued up while the last batch was being made durable, and makes that durable in one go."""

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._loop = loop
        self._queue: list[Job] = []
        self._wake = threading.Condition()
        self._closing = False
        self._batches = Batches(database)
        self._checkpoints = _Checkpoints(database, loop)
        self._thread = keep_thread(self._run, "store-writer", loop)

    def submit(self, job: Job) -> None:
        with self._wake:
            if self._closing:
                raise RuntimeError("the store is closed")
            self._queue.append(job)
            self._wake.notify()

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()
        self._checkpoints.close()
        self._database.close()

    def _take(self) -> list[Job]:
        with self._wake:
            while not self._queue and not self._closing:
                self._wake.wait()
            batch, self._queue = self._queue, []
            return batch

    def _run(self) -> None:
        while batch := self._take():
            self._loop.call_soon_threadsafe(_finish, self._batches.run(batch))
            self._checkpoints.after_batch()


def _finish(outcomes: Sequence[tuple[Job, BaseException | None]]) -> None:
    for job, outcome in outcomes:
        job.done(outcome)


class _Checkpoints:
    """Moves the write-ahead log into the database beside the writer, so that writers hardly ever wait for it."""

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._writer = database
        self._other = Database(database.path)
        self._due = threading.Event()
        self._caught_up = False
        self._commits_then = 0
        self._closing = False
        self._thread = keep_thread(self._run, "store-checkpoints", loop)

    def after_batch(self) -> None:
        """On the writer's thread. Only a log that keeps growing although it is checkpointed is cut here: just after a passive
        checkpoint, when little is left to move and the writer hardly waits."""
        size = self._writer.wal_size()
        if size > PASSIVE_AT:
            self._due.set()
        if size > TRUNCATE_AT and self._caught_up:
            self._caught_up = False
            self._try(self._writer, "TRUNCATE")

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._closing:
                return
            if self._something_to_move():
                self._try(self._other, "PASSIVE")
                self._commits_then = self._writer.commits
                self._caught_up = True
            # A pause, or a steady stream of writes would mean a steady stream of checkpoints.
            threading.Event().wait(0.2)

    def _something_to_move(self) -> bool:
        """SQLite before 3.51.3 can lose commits: when a checkpoint that finds all done already meets the commit that starts the log
        over, it takes the new log for done as well. With something left to move the log cannot start over. That is sure after two
        commits that were counted since the last checkpoint: the first may have been on disk before it, and counted late."""
        return self._writer.commits >= self._commits_then + 2

    def _try(self, database: Database, mode: str) -> None:
        try:
            database.checkpoint(mode)
        except sqlite3.Error:
            # Nothing is lost by a checkpoint that did not happen (a full disk, a lock): the log still holds everything.
            return

    def close(self) -> None:
        self._closing = True
        self._due.set()
        self._thread.join()
        self._try(self._other, "TRUNCATE")
        self._other.close()
