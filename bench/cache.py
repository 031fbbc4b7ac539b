"""The cache: 100,000 objects of 6 KB listed and indexed, and what each event then costs; beside the official Python client."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.load import MERGE_PATCH, Call, connect, each, pod_path
from bench.memory import fill_store
from bench.objects import status_patch
from bench.report import LESS, Report, Row, at_most
from bench.rounds import Figures, Measured
from bench.sides import OURS, Options, Side, herder, temporary

NAME = "cache"
OFFICIAL = "official client"
LIST_LIMIT, EVENT_LIMIT, MEMORY_LIMIT = 3, 50, 1.5
# The official client takes so long that it reads only so many, once.
FEW = 2000


def run(options: Options) -> Report:
    count, events = options.pick(100_000, 10_000), options.pick(5000, 1000)
    measured, marks = Measured(), itertools.count()
    with temporary(options) as folder:
        size = fill_store(folder / "full", count)
        with herder(folder / "full") as side:
            for _ in range(options.pick(5, 1)):
                for how in ("socket", "tls", "official"):
                    figures = asyncio.run(_measure(side, how, count, events, marks))
                    measured.add(OFFICIAL if how == "official" else OURS, figures)
    title = f"{count:,} objects of {size / 1000:.1f} KB, listed and indexed; then {events:,} events"
    notes = [f"the official client listed {FEW:,} objects: its figures for {count:,} are those, times {count // FEW}"]
    if options.quick:
        notes.append(f"a quick run: {count:,} objects, so the promises about 100,000 are not judged")
    rows = _rows(measured, judged=not options.quick)
    return Report(NAME, title, rows, notes, sides=(OURS, OFFICIAL), rounds=measured.rounds)


async def _measure(side: Side, how: str, count: int, events: int, marks: Iterator[int]) -> Figures:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.cache_process", _asked(side, how), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    before = side.cpu_seconds()
    listed = json.loads(await process.stdout.readline())
    server = side.cpu_seconds() - before
    process.stdin.write(f"{await _write(side, events, marks)} {events}\n".encode())
    told = json.loads(await process.stdout.readline())
    await process.wait()
    return _figures(how, listed, told, count / listed["count"] if how == "official" else 1, server)


def _figures(how: str, listed: dict[str, Any], told: dict[str, Any], scale: float, server: float) -> Figures:
    figures = {
        "wall": listed["wall"] * scale,
        "cpu": listed["cpu"] * scale,
        "server": server * scale,
        "event": told["cpu"] / told["count"] * 1e6,
        "rss": told["rss"] / 1e9,
        "peak": told["peak"] / 1e9,
    }
    if how == "official":
        # Its memory does not grow from zero, so it cannot be scaled.
        figures = {name: value for name, value in figures.items() if name not in ("rss", "peak")}
        return figures | {f"tls_{name}": value for name, value in figures.items()}
    return figures if how == "socket" else {f"tls_{name}": value for name, value in figures.items()}


async def _write(side: Side, events: int, marks: Iterator[int]) -> str:
    """As many status patches; the resourceVersion of the last."""
    versions: list[int] = []
    async with connect(side) as client:

        async def patch(name: str) -> None:
            body = await client.send(Call("PATCH", pod_path(name, "status"), status_patch(next(marks)), MERGE_PATCH))
            versions.append(int(msgspec.json.decode(body)["metadata"]["resourceVersion"]))

        await each(patch, [f"copy-{number:07d}" for number in range(events)], workers=8)
    return str(max(versions))


def _asked(side: Side, how: str) -> str:
    engine = side.engine
    files = {"ca": str(engine.ca), "certificate": str(engine.client_certificate), "key": str(engine.client_key)}
    socket = str(engine.kubeconfig.parent / "data" / "server.sock")
    return json.dumps({"how": how, "server": engine.server, "socket": socket, "limit": FEW, **files})


def _rows(measured: Measured, *, judged: bool) -> list[Row]:
    def row(figure: str, what: str, unit: str) -> Row:
        return Row(what, unit, measured.median(OURS, figure), measured.median(OFFICIAL, figure), LESS)

    list_limit, memory_limit = (LIST_LIMIT, MEMORY_LIMIT) if judged else (None, None)
    return [
        at_most(row("wall", "listed and indexed, unix socket", "s"), list_limit, f"≤ {LIST_LIMIT} s"),
        row("cpu", "… CPU of the cache's process", "s"),
        row("server", "… CPU of the server", "s"),
        row("tls_wall", "listed and indexed, TLS", "s"),
        row("tls_cpu", "… CPU of the cache's process", "s"),
        at_most(row("event", "CPU per event, unix socket", "µs"), EVENT_LIMIT, f"≤ {EVENT_LIMIT} µs"),
        at_most(row("tls_event", "CPU per event, TLS", "µs"), EVENT_LIMIT, f"≤ {EVENT_LIMIT} µs"),
        at_most(row("rss", "memory of the cache's process", "GB"), memory_limit, f"≤ {MEMORY_LIMIT} GB"),
        at_most(row("peak", "… at its peak", "GB"), memory_limit, f"≤ {MEMORY_LIMIT} GB"),
    ]
