"""kill -9 at many points of a restore: afterwards everything is as before, or everything as in the backup, keys included."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.app import keys
from herder.app.backups import backup_to, restore_from
from herder.app.data_directory import DataDirectory
from herder.server.store import Database, InlineWriter, Record, Store

KILLS = 60
OBJECTS = 150
State = tuple[dict[str, bytes], dict[str, bytes]]


def filled(path: Path, value: str) -> DataDirectory:
    """As a herder would have left it: objects, and a certificate authority of two files."""
    directory = DataDirectory(path)
    directory.take("test")

    async def write() -> None:
        database = Database(path / "herder.db")
        store = Store(database, InlineWriter(database))
        for number in range(OBJECTS):
            name, revision = f"{value}-{number}" if number % 2 else f"both-{number}", store.reserve()
            metadata = {"name": name, "uid": f"{value}-{number}", "resourceVersion": str(revision)}
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}
            await store.put("configmaps", Record(name, revision, msgspec.json.encode(document)), None)
        store.close()

    asyncio.run(write())
    for name in ("ca.crt", "ca.key"):
        (directory.pki / name).write_text(value)
    directory.release()
    return directory


def contents(directory: DataDirectory) -> State:
    """What the next start would find, without the resourceVersions."""
    keys.finish(directory)
    database = Database(directory.path / "herder.db")

    async def read() -> dict[str, bytes]:
        store = Store(database, InlineWriter(database))
        found = {record.key: _bare(record) for kind in store.kinds() for record in store.scan(kind)}
        store.close()
        return found

    return asyncio.run(read()), keys.kept_files(directory)


def _bare(record: Record) -> bytes:
    document = record.document()
    del document["metadata"]["resourceVersion"]
    return msgspec.json.encode(document)


def restore_and_die(directory: DataDirectory, file: Path, at: int) -> bool:
    """In a process of its own, killed when it has made so many calls; whether it got that far."""
    child = os.fork()
    if not child:
        left = at

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        asyncio.run(restore_from(DataDirectory(directory.path), file))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def calls_of(directory: DataDirectory, file: Path) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        asyncio.run(restore_from(directory, file))
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "backup"
    asyncio.run(backup_to(filled(tmp_path / "source", "new"), path))
    return path


def test_a_killed_restore_leaves_the_old_or_the_new_state(tmp_path: Path, file: Path) -> None:
    before = filled(tmp_path / "before", "old")
    old = contents(before)
    calls = calls_of(filled(tmp_path / "after", "old"), file)
    new = contents(DataDirectory(tmp_path / "after"))
    assert old != new
    seen: list[bool] = []
    for number in range(KILLS):
        victim = tmp_path / "victim"
        shutil.copytree(before.path, victim)
        # Close together at the end, where the commit is.
        at = max(1, round(calls * (1 - (1 - (number + 1) / KILLS) ** 2)))
        killed = restore_and_die(DataDirectory(victim), file, at)
        found = contents(DataDirectory(victim))
        assert found in (old, new), f"a mix after {at} of {calls} calls"
        assert killed or found == new
        seen.append(found == new)
        shutil.rmtree(victim)
    # Both kinds of end were met, and once it is new it stays so.
    assert seen == sorted(seen)
    assert not seen[0] and seen[-1]
