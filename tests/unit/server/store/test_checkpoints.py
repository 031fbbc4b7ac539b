"""The write-ahead log is moved into the file beside the writer, and nothing is lost or held up by that."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

import pytest

from herder.server.store import Database
from herder.server.store import writer as writer_module
from tests.engines.waiting import eventually
from tests.unit.server.store.rig import Rig, copy_as_if_killed, inline, threaded

LARGE = 20_000


@asynccontextmanager
async def checkpointing(path: Path, *, passive_at: int, truncate_at: int) -> AsyncGenerator[Rig]:
    with mock.patch.multiple(writer_module, PASSIVE_AT=passive_at, TRUNCATE_AT=truncate_at):
        rig = Rig(path, threaded)
        try:
            yield rig
        finally:
            await rig.close()


async def write_some(rig: Rig, count: int) -> None:
    await asyncio.gather(*(rig.put("pods", "default", f"pod-{number}", size=LARGE) for number in range(count)))


async def test_what_was_written_gets_into_the_file_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    async with checkpointing(path, passive_at=0, truncate_at=10**9) as rig:
        await write_some(rig, 20)

        async def moved() -> bool:
            await rig.put("nodes", "", "node-1")
            return path.stat().st_size > 20 * LARGE

        await eventually(moved)


@pytest.mark.slow
async def test_cutting_the_log_loses_nothing(tmp_path: Path) -> None:
    """The log is cut all the time while many write, and a kill comes right behind some bursts."""
    path = tmp_path / "herder.db"
    modes: list[str] = []
    checkpoint = Database.checkpoint

    def noted(database: Database, mode: str) -> None:
        modes.append(mode)
        checkpoint(database, mode)

    with mock.patch.object(Database, "checkpoint", noted):
        async with checkpointing(path, passive_at=0, truncate_at=0) as rig:

            async def cut_often() -> bool:
                await write_some(rig, 10)
                rig.store.compact(rig.store.revision - 100)
                return modes.count("TRUNCATE") >= 3

            for life in range(3):
                modes.clear()
                await eventually(cut_often)
                await _agrees_after_a_kill(rig, path, tmp_path / f"life-{life}")


async def _agrees_after_a_kill(rig: Rig, path: Path, to: Path) -> None:
    expected = rig.contents("pods")
    with sqlite3.connect(path, isolation_level=None) as holder:
        # A kill sees both files in one moment. We copy one after the other, so the log must not start over between them.
        holder.execute("BEGIN IMMEDIATE")
        left_behind = copy_as_if_killed(path, to)
        holder.execute("ROLLBACK")
    holder.close()
    other = Rig(left_behind, inline)
    assert other.contents("pods") == expected
    await other.close()


async def test_a_reader_that_takes_its_time_holds_nobody_up_and_sees_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    async with checkpointing(path, passive_at=0, truncate_at=0) as rig:
        await write_some(rig, 5)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*), max(revision) FROM log").fetchone()
        async with asyncio.timeout(30):
            for _ in range(10):
                await write_some(rig, 5)
        assert reader.execute("SELECT count(*), max(revision) FROM log").fetchone() == before == (5, 5)
        reader.execute("ROLLBACK")
        assert reader.execute("SELECT count(*) FROM log").fetchone() == (55,)
        reader.close()


@pytest.mark.slow
async def test_a_checkpoint_waits_for_something_to_move(tmp_path: Path) -> None:
    """SQLite before 3.51.3 loses commits when a checkpoint with nothing to do meets the commit that starts the log over."""
    path = tmp_path / "herder.db"
    runs: list[int] = []
    checkpoint = Database.checkpoint

    async with checkpointing(path, passive_at=-1, truncate_at=10**9) as rig:

        def counted(database: Database, mode: str) -> None:
            runs.append(rig.database.commits)
            checkpoint(database, mode)
            runs.append(rig.database.commits)

        with mock.patch.object(Database, "checkpoint", counted):
            for _ in range(40):
                await rig.put("pods", "default", "web")
                await asyncio.sleep(0.02)
    started, ended = runs[2:-2:2], runs[1:-2:2]
    assert started, "there was no second checkpoint to look at"
    assert all(start >= end + 2 for start, end in zip(started, ended, strict=False))


async def test_closing_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = Rig(path, threaded)
    await write_some(rig, 5)
    await rig.close()
    assert [file.name for file in tmp_path.iterdir()] == ["herder.db"]
