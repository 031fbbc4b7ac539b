"""The log in SQLite: one row per write, in the order of their resourceVersions.

There is one table of data. What an object is now is its newest row; a row that has been superseded stays until compaction, so that
watches and paged lists can go back to it, also after a restart. Rows are only ever appended and, by compaction, deleted.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FORMAT = 1
PUT = 0
DELETE = 1
COLUMNS = 7
# Up to which revision history is given up, and which rows go.
Compaction = tuple[int, Sequence[int]]
_NAMES = "revision,previous,operation,kind,namespace,name,data"
_CHUNKS = (128, 64, 32, 16, 8, 4, 2, 1)

_SETTINGS = ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0", "cache_size=-16384")

_CREATE = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,      -- the resourceVersion of this write
    previous INTEGER,                  -- the revision it superseded; NULL for a create
    operation INTEGER NOT NULL,        -- 0 put, 1 delete (data is then the last state)
    kind TEXT NOT NULL,                -- pods, deployments.apps, ...
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- For people who look into the file: the objects as they are now.
CREATE VIEW current AS
    SELECT kind, namespace, name, max(revision) AS revision, data, operation
    FROM log GROUP BY kind, namespace, name HAVING operation = 0;
"""


class DataError(Exception):
    """The data directory cannot be used; the text is a sentence for a person."""


class NewerFormatError(DataError):
    pass


class Row(NamedTuple):
    revision: int
    previous: int | None
    operation: int
    kind: str
    namespace: str
    name: str
    data: bytes


class Replay(NamedTuple):
    """A row of history with the bytes of the state it superseded."""

    row: Row
    before: bytes | None


class Replayed(NamedTuple):
    """Rows of history, and up to which revision none is missing."""

    found: list[Replay]
    end: int


class Database:
    """Blocking calls on one connection; the writer thread owns the one that writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # How many batches this connection has made durable.
        self.commits = 0
        self._connection = _connect(path)
        self._prepare()

    def _prepare(self) -> None:
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                if self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise DataError(f"{self.path} holds the data of another program; use another --data directory")
                self._connection.executescript(f"BEGIN IMMEDIATE; {_CREATE} PRAGMA user_version={FORMAT}; COMMIT;")
            elif version > FORMAT:
                raise NewerFormatError(
                    f"{self.path} was written by a newer version of herder (data format {version}, this one knows {FORMAT}); "
                    "use that version, or another --data directory"
                )
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise DataError(f"{self.path} cannot be opened as a herder database: {error}") from error
        except DataError:
            self._connection.close()
            raise

    def rows(self) -> Iterator[Row]:
        """The whole log, oldest first."""
        try:
            cursor = self._connection.execute(f"SELECT {_NAMES} FROM log ORDER BY revision")
            while chunk := cursor.fetchmany(1000):
                for values in chunk:
                    yield Row(*values)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: sqlite3.DatabaseError) -> DataError:
        return DataError(f"{self.path} is damaged: {error}")

    def meta(self, key: str) -> str | None:
        try:
            found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error
        return found[0] if found else None

    def set_meta(self, key: str, value: str) -> None:
        self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (key, value))

    def write(self, rows: Sequence[Row], compactions: Sequence[Compaction] = (), meta: Sequence[tuple[str, str]] = ()) -> None:
        """All of it durable, or nothing of it there."""
        if len(rows) == 1 and not compactions and not meta:
            self._insert(rows)  # one statement is a transaction by itself
            self.commits += 1
            return
        with _Transaction(self._connection):
            self._insert(rows)
            for key, value in meta:
                self.set_meta(key, value)
            for upto, revisions in compactions:
                self._compact(upto, revisions)
        self.commits += 1

    def _insert(self, rows: Sequence[Row]) -> None:
        # One statement for many rows: each statement gives up the interpreter lock once, and taking it back from a busy event loop
        # is what a batch of single inserts would spend its time on. A few fixed sizes keep the prepared statements few.
        start = 0
        for size in _CHUNKS:
            while len(rows) - start >= size:
                values = [value for row in rows[start : start + size] for value in row]
                self._connection.execute(_insert_of(size), values)
                start += size

    def _compact(self, upto: int, revisions: Sequence[int]) -> None:
        """Drop superseded rows. History before `upto` is then no longer whole, and that is stored with it."""
        self.set_meta("compacted", str(upto))
        marks = ",".join("?" * len(revisions))
        self._connection.execute(f"DELETE FROM log WHERE revision IN ({marks})", tuple(revisions))

    def replay(
        self, kind: str, namespace: str, after: int, with_previous: bool, upto: int, most_rows: int, most_bytes: int
    ) -> Replayed:
        """The history of one kind in (after, upto], in one read transaction so that compaction cannot cut into it. It ends behind
        the row that makes it too much. `namespace` "" is all of them."""
        join = " LEFT JOIN log AS p ON p.revision = l.previous" if with_previous else ""
        cursor = self._connection.execute(
            f"SELECT {','.join('l.' + name for name in _NAMES.split(','))}, {'p.data' if with_previous else 'NULL'}"
            f" FROM log AS l{join} WHERE l.revision > ? AND l.revision <= ? AND l.kind = ? AND (? = '' OR l.namespace = ?)"
            " ORDER BY l.revision",
            (after, upto, kind, namespace, namespace),
        )
        found: list[Replay] = []
        size = 0
        for values in cursor:
            found.append(Replay(Row(*values[:COLUMNS]), values[COLUMNS]))
            size += len(found[-1].row.data) + len(found[-1].before or b"")
            if size >= most_bytes or len(found) >= most_rows:
                cursor.close()
                return Replayed(found, found[-1].row.revision)
        return Replayed(found, upto)

    def first_changes(self, kind: str, namespace: str, after: int, upto: int, most: int) -> list[tuple[str, str, int | None]]:
        """For each object that changed in (after, upto], the revision that it had before. Without the objects themselves."""
        cursor = self._connection.execute(
            "SELECT namespace, name, previous, min(revision) FROM log"
            " WHERE revision > ? AND revision <= ? AND kind = ? AND (? = '' OR namespace = ?) GROUP BY namespace, name LIMIT ?",
            (after, upto, kind, namespace, namespace, most),
        )
        return [values[:3] for values in cursor.fetchall()]

    def states(self, revisions: Sequence[int], most_bytes: int) -> list[tuple[int, bytes]]:
        """The data of these rows, up to the one that makes it too much."""
        marks = ",".join("?" * len(revisions))
        cursor = self._connection.execute(f"SELECT revision, data FROM log WHERE revision IN ({marks})", tuple(revisions))
        found: list[tuple[int, bytes]] = []
        for revision, data in cursor:
            found.append((revision, data))
            most_bytes -= len(data)
            if most_bytes < 0:
                cursor.close()
                break
        return found

    def wal_size(self) -> int:
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    def checkpoint(self, mode: str) -> None:
        self._connection.execute("PRAGMA busy_timeout=100")
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        finally:
            self._connection.execute("PRAGMA busy_timeout=10000")

    def close(self) -> None:
        self._connection.close()


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
                return
            except BaseException:
                self._rollback()
                raise
        self._rollback()

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


_statements: dict[int, str] = {}


def _insert_of(size: int) -> str:
    if size not in _statements:
        one = "(" + ",".join("?" * COLUMNS) + ")"
        _statements[size] = "INSERT INTO log VALUES " + ",".join([one] * size)
    return _statements[size]


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path} cannot be opened: {error}") from error
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.DatabaseError as error:
        connection.close()
        why = "cannot be opened" if isinstance(error, sqlite3.OperationalError) else "is not a herder database"
        raise DataError(f"{path} {why}: {error}") from error
    return connection
