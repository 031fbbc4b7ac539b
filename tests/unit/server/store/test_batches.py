"""Group commit: many writes, few transactions; what fails, fails together with all that rests on it."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herder.server.store import Database, StorageFullError, StoreStopped, Writer
from herder.server.store.database import Row
from herder.server.store.writer import Job
from tests.unit.server.store.rig import BreakableDatabase, Compaction, MakeWriter, Rig, inline, outcomes, raw_of, threaded

LARGER_THAN_A_PAGE = 40_000
both_writers = pytest.mark.parametrize("make_writer", [inline, threaded])


@asynccontextmanager
async def opened(path: Path, make_writer: MakeWriter) -> AsyncGenerator[Rig]:
    rig = Rig(path, make_writer)
    try:
        yield rig
    finally:
        await rig.close()


class SlowDatabase(BreakableDatabase):
    """Its writes wait until the test lets them go on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.started = threading.Event()
        self.go_on = threading.Event()

    def write(self, rows: Sequence[Row], compactions: Sequence[Compaction] = (), meta: Sequence[tuple[str, str]] = ()) -> None:
        self.started.set()
        assert self.go_on.wait(10)
        super().write(rows, compactions, meta)


class SlowRig(Rig):
    def __init__(self, path: Path) -> None:
        super().__init__(path, threaded)

    def make_database(self, path: Path) -> BreakableDatabase:
        self.slow = SlowDatabase(path)
        return self.slow


@asynccontextmanager
async def held_up(path: Path) -> AsyncGenerator[SlowRig]:
    """A store whose first write is under way, and stays there."""
    rig = SlowRig(path)
    try:
        yield rig
    finally:
        rig.slow.go_on.set()
        await rig.close()


async def test_writes_that_come_while_the_disk_is_busy_share_one_transaction(tmp_path: Path) -> None:
    async with held_up(tmp_path / "herder.db") as rig:
        first = rig.put("pods", "default", "first")
        await asyncio.to_thread(rig.slow.started.wait, 10)
        rest = [rig.put("pods", "default", f"pod-{number}") for number in range(777)]
        rig.slow.go_on.set()
        assert await outcomes([first, *rest]) == [None] * 778
        assert rig.database.batches == [1, 777]
        assert [step.revision for step in rig.told] == list(range(1, 779))
        assert len(rig.contents("pods")) == 778


async def test_a_write_is_not_visible_before_it_is_durable(tmp_path: Path) -> None:
    async with held_up(tmp_path / "herder.db") as rig:
        written = rig.put("pods", "default", "web")
        await asyncio.to_thread(rig.slow.started.wait, 10)
        assert rig.store.get("pods", "default/web") is None
        assert rig.store.latest("pods", "default/web") is not None
        assert (rig.contents("pods"), rig.told, rig.store.revision) == ({}, [], 0)
        rig.slow.go_on.set()
        await written
        assert rig.store.get("pods", "default/web") is not None


async def test_what_was_decided_on_a_write_that_failed_fails_too(tmp_path: Path) -> None:
    """The second write comes while the first is still on its way, and updates what the first is about to create."""
    path = tmp_path / "herder.db"
    async with held_up(path) as rig:
        rig.slow.fill()
        created = rig.put("pods", "default", "web", size=LARGER_THAN_A_PAGE)
        await asyncio.to_thread(rig.slow.started.wait, 10)
        updated = rig.put("pods", "default", "web")
        unrelated = rig.put("pods", "default", "other")
        rig.slow.go_on.set()
        errors = await outcomes([created, updated, unrelated])
        assert [type(error) for error in errors] == [StorageFullError] * 3
        # Only the first was tried at all: the others are refused by their epoch.
        assert rig.database.batches == [1]
        assert rig.store.latest("pods", "default/web") is None
        assert (rig.contents("pods"), rig.told) == ({}, [])
        # What is decided in knowledge of the failure is written as ever.
        await rig.put("pods", "default", "web")
    async with opened(path, inline) as rig:
        assert list(rig.contents("pods")) == ["default/web"]


@both_writers
async def test_a_full_disk_is_an_error_to_the_writer_and_over_when_there_is_room(tmp_path: Path, make_writer: MakeWriter) -> None:
    path = tmp_path / "herder.db"
    async with opened(path, make_writer) as rig:
        await rig.put("pods", "default", "before")
        kept = rig.contents("pods")
        rig.database.fill()
        futures = [rig.put("pods", "default", f"large-{number}", size=LARGER_THAN_A_PAGE) for number in range(5)]
        assert {type(error) for error in await outcomes(futures)} == {StorageFullError}
        assert rig.contents("pods") == kept
        with pytest.raises(StorageFullError, match="full"):
            await rig.put("pods", "default", "before", size=LARGER_THAN_A_PAGE)
        assert rig.contents("pods") == kept
        rig.database.make_room()
        await rig.put("pods", "default", "after", size=LARGER_THAN_A_PAGE)
        now = rig.contents("pods")
        assert list(now) == ["default/after", "default/before"]
    async with opened(path, inline) as rig:
        assert rig.contents("pods") == now


async def test_a_compaction_that_fails_takes_the_writes_of_its_batch_back_with_it(tmp_path: Path) -> None:
    """One transaction: otherwise what is reported as failed would come back at the next start."""
    path = tmp_path / "herder.db"
    async with opened(path, inline) as rig:
        await rig.put("pods", "default", "web")
        revision = rig.store.reserve()
        row = Row(revision, None, 0, "pods", "default", "half", raw_of("default", "half", revision, 10))
        with pytest.raises(OverflowError):
            rig.database.write([row], [(1, [10**30])])
    async with opened(path, inline) as rig:
        assert list(rig.contents("pods")) == ["default/web"]
        assert rig.store.compacted == 0


@both_writers
async def test_after_an_error_that_leaves_things_open_the_store_stops(tmp_path: Path, make_writer: MakeWriter) -> None:
    async with opened(tmp_path / "herder.db", make_writer) as rig:
        failures: list[BaseException] = []
        rig.store.on_failure = failures.append
        await rig.put("pods", "default", "before")
        rig.database.fails_before_commit = True
        errors = await outcomes([rig.put("pods", "default", "web")])
        assert [type(error) for error in errors] == [StoreStopped]
        assert [str(failure) for failure in failures] == ["disk I/O error"]
        rig.database.fails_before_commit = False
        with pytest.raises(StoreStopped, match="disk I/O error"):
            rig.put("pods", "default", "later")
        assert not rig.store.compact(1)
        assert list(rig.contents("pods")) == ["default/before"]


class ForgetfulDatabase(Database):
    def write(self, rows: Sequence[Row], compactions: Sequence[Compaction] = (), meta: Sequence[tuple[str, str]] = ()) -> None:
        raise ValueError("no error that SQLite knows")


@both_writers
async def test_an_error_that_nobody_expects_reaches_whoever_waits(tmp_path: Path, make_writer: MakeWriter) -> None:
    database = ForgetfulDatabase(tmp_path / "herder.db")
    writer: Writer = make_writer(database)
    told: list[BaseException | None] = []
    done = asyncio.Event()

    def finished(outcome: BaseException | None) -> None:
        told.append(outcome)
        done.set()

    writer.submit(Job(0, finished, [Row(1, None, 0, "pods", "", "one", b"{}")]))
    async with asyncio.timeout(10):
        await done.wait()
    assert [type(error) for error in told] == [ValueError]
    await asyncio.to_thread(writer.close)


async def test_closing_finishes_what_was_submitted(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = Rig(path, threaded)
    futures = [rig.put("pods", "default", f"pod-{number}") for number in range(300)]
    await rig.close()
    assert await outcomes(futures) == [None] * 300
    async with opened(path, inline) as rig:
        assert len(rig.contents("pods")) == 300


async def test_a_closed_store_takes_nothing_more(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "herder.db", threaded)
    await rig.close()
    with pytest.raises(RuntimeError, match="closed"):
        rig.put("pods", "default", "late")
