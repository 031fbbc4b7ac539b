"""Why the store has one table: what a second one, with the objects as they are now, would cost each write."""

import time
from collections.abc import Sequence
from pathlib import Path

from bench.objects import pod
from bench.report import MORE, Report, Row
from bench.rounds import Figures, Measured
from bench.sides import Options, temporary
from herder.server.store.database import PUT, Database
from herder.server.store.database import Row as LogRow
from herder.server.store.writer import PASSIVE_AT

NAME = "store-log"
ONE = "log alone"
TWO = "log and table"
SIZE = 6144
OBJECTS = 10_000
BATCHES = (1, 64)
# Checkpoints are part of the price: a busy writer makes one about this often.
_CHECKPOINT_AT = PASSIVE_AT * 4


class WithTable(Database):
    """The same log, and in the same transaction a row per object."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._connection.execute(
            # An index beside the rows: with rows of this size in the index itself (WITHOUT ROWID) it is slower still.
            "CREATE TABLE latest (kind TEXT, namespace TEXT, name TEXT, revision INTEGER NOT NULL, data BLOB NOT NULL,"
            " UNIQUE (kind, namespace, name))"
        )

    def _insert(self, rows: Sequence[LogRow]) -> None:
        super()._insert(rows)
        values = [(row.kind, row.namespace, row.name, row.revision, row.data) for row in rows]
        self._connection.executemany(
            "INSERT INTO latest VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, namespace, name)"
            " DO UPDATE SET revision = excluded.revision, data = excluded.data",
            values,
        )


class _Writes:
    """Rows without end: each object is written, then written again, as status updates do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._revision = 0
        self._data = pod("bench", SIZE)

    def run(self, seconds: float, batch: int) -> float:
        """Durable writes a second, the moving of the write-ahead log included."""
        began, first = time.perf_counter(), self._revision
        while time.perf_counter() - began < seconds:
            self._database.write([self._next() for _ in range(batch)])
            if self._database.wal_size() > _CHECKPOINT_AT:
                self._database.checkpoint("TRUNCATE")
        return (self._revision - first) / (time.perf_counter() - began)

    def _next(self) -> LogRow:
        self._revision += 1
        # A stride that visits all objects, and not in order of their names: nor do real writers.
        name = f"pod-{self._revision * 7919 % OBJECTS:06d}"
        previous = self._revision - OBJECTS if self._revision > OBJECTS else None
        return LogRow(self._revision, previous, PUT, "pods", "bench", name, self._data)


def run(options: Options) -> Report:
    with temporary(options) as folder:
        writers = {ONE: _Writes(Database(folder / "one.db")), TWO: _Writes(WithTable(folder / "two.db"))}
        measured = _measure(writers, options)
    rows = [_row(measured, batch) for batch in BATCHES]
    return Report(NAME, "durable writes of 6 KB into SQLite", rows, sides=(ONE, TWO), rounds=measured.rounds)


def _measure(writers: dict[str, _Writes], options: Options) -> Measured:
    measured = Measured()
    for number in range(options.rounds + 1):
        for side in writers if number % 2 else reversed(writers):
            figures: Figures = {str(batch): writers[side].run(options.seconds / 2, batch) for batch in BATCHES}
            if number:
                measured.add(side, figures)
    return measured


def _row(measured: Measured, batch: int) -> Row:
    what = "writes, one a commit" if batch == 1 else f"writes, {batch} a commit"
    return Row(what, "/s", measured.median(ONE, str(batch)), measured.median(TWO, str(batch)), MORE)
