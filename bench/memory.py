"""How soon the program is there, and what it weighs: with nothing, and with 100,000 objects of 6 KB."""

import asyncio
import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.download import Downloader
from bench.load import JSON, Call, connect_all
from bench.objects import NAMESPACE, PODS, Pods
from bench.processes import peak_bytes, resident_bytes
from bench.real import run_real
from bench.report import LESS, Report, Row, at_most
from bench.rounds import Figures, Measured
from bench.sides import OURS, THEIRS, Options, Side, herder, start, temporary
from herder.server.store.database import PUT, Database
from herder.server.store.database import Row as LogRow
from tests.engines.engine import Unavailable

NAME = "memory"
# As sent; defaults and managed fields make about 6 KB of it.
SIZE = 2200
EMPTY_LIMIT = 2
FULL_LIMIT = 5
MEMORY_LIMIT = 1.5
_GB = 1e9
_MODEL = "model-object"


def run(options: Options) -> Report:
    count = options.pick(100_000, 20_000)
    measured, notes = Measured(), list[str]()
    with temporary(options) as folder, _compiled_once(folder / "compiled"):
        with herder(folder / "first"):
            pass  # this start compiles the program; the measured ones find that done, as a person's second start does
        for number in range(options.rounds):
            measured.add(OURS, _empty_start(lambda to: herder(to), folder / f"empty-{number}"))
            try:
                measured.add(THEIRS, _empty_start(lambda to: start(THEIRS, run_real, to), folder / f"real-{number}"))
            except Unavailable as reason:
                notes = [f"only one side was measured: {reason}"]
        size = fill_store(folder / "full", count)
        for _ in range(options.pick(3, 1)):
            measured.add(OURS, _full_start(folder / "full"))
    notes.append("memory is the sum over the side's processes; what they share is counted for each")
    if options.quick:
        notes.append(f"a quick run: {count:,} objects, so the promises about 100,000 are not judged")
    title = f"start, and memory with {count:,} objects of {size / 1000:.1f} KB"
    return Report(NAME, title, _rows(measured, count, judged=not options.quick), notes, rounds=measured.rounds)


@contextmanager
def _compiled_once(folder: Path) -> Generator[None]:
    """Python keeps what it compiled, whatever this environment says, and not in the tree."""
    before = dict(os.environ)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _empty_start(run_in: Callable[[Path], AbstractContextManager[Side]], folder: Path) -> Figures:
    began = time.perf_counter()
    with run_in(folder) as side:
        return {"empty_start": time.perf_counter() - began, "empty_rss": resident_bytes(side.processes()) / _GB}


def _full_start(folder: Path) -> Figures:
    began = time.perf_counter()
    with herder(folder) as side:
        figures = {"full_start": time.perf_counter() - began, "full_rss": resident_bytes(side.processes()) / _GB}
        Downloader(side).get(PODS, JSON)
        processes = side.processes()
        return figures | {"used_rss": resident_bytes(processes) / _GB, "peak_rss": peak_bytes(processes) / _GB}


def fill_store(folder: Path, count: int) -> int:
    """Through the API would take minutes: one pod goes that way, and what is stored of it becomes all the others."""
    with herder(folder) as side:
        asyncio.run(_create_model(side))
    database = Database(next((folder / "data").rglob("*.db")))
    try:
        rows = list(database.rows())
        model = next(row for row in rows if row.namespace == NAMESPACE and row.kind == "pods")
        _multiply(database, model, rows[-1].revision, count)
        database.checkpoint("TRUNCATE")
        return len(model.data)
    finally:
        database.close()


async def _create_model(side: Side) -> None:
    async with connect_all([side]) as clients:
        await clients[0].send(Call("POST", PODS, Pods(SIZE).named(_MODEL)))


def _multiply(database: Database, model: LogRow, last: int, count: int, batch: int = 1000) -> None:
    for begin in range(0, count, batch):
        rows = [_copy(model, last + 1 + number, number) for number in range(begin, min(count, begin + batch))]
        database.write(rows)


def _copy(model: LogRow, revision: int, number: int) -> LogRow:
    name = f"copy-{number:07d}"
    uid = f"00000000-0000-4000-8000-{number:012x}".encode()
    data = model.data.replace(_MODEL.encode(), name.encode())
    for field, value in ((b'"uid":"', uid), (b'"resourceVersion":"', str(revision).encode())):
        head, mark, tail = data.partition(field)
        data = head + mark + value + tail[tail.index(b'"') :]
    return LogRow(revision, None, PUT, model.kind, model.namespace, name, data)


def _rows(measured: Measured, count: int, *, judged: bool) -> list[Row]:
    def row(figure: str, what: str, unit: str, better: str = LESS) -> Row:
        return Row(what, unit, measured.median(OURS, figure), measured.median(THEIRS, figure), better)

    full_limit, memory_limit = (FULL_LIMIT, MEMORY_LIMIT) if judged else (None, None)
    return [
        at_most(row("empty_start", "ready, empty directory", "s"), EMPTY_LIMIT, f"< {EMPTY_LIMIT} s"),
        row("empty_rss", "memory, empty", "GB"),
        at_most(row("full_start", f"ready, {count:,} objects", "s"), full_limit, f"< {FULL_LIMIT} s"),
        at_most(row("full_rss", f"memory, {count:,} objects", "GB"), memory_limit, f"≤ {MEMORY_LIMIT} GB"),
        row("used_rss", "… after a list of all of them", "GB"),
        row("peak_rss", "… at its peak", "GB"),
    ]
