"""Watch fan-out: how soon all watchers know of a write, and how many events a second they can be given."""

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import Iterator

import aiohttp

from bench.load import MERGE_PATCH, Call, Client, Cost, connect_all, fill, load_figures, percentile, pod_path, repeat
from bench.objects import MARK_DIGITS, PODS, status_patch
from bench.report import MORE, Report, Row, row_of
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

NAME = "watches"
WATCHERS = 100
PODS_WATCHED = 200
SIZE = 4096
WRITES_PER_SECOND = 20
BURST_WRITERS = 8
_MARK = re.compile(rb"mark-(\d{%d})" % MARK_DIGITS)
_PATIENCE = 10.0


class Watchers:
    """Streams that note when each mark arrived. Nothing is decoded: the client must keep up with all of them."""

    def __init__(self, answers: list[aiohttp.ClientResponse]) -> None:
        self._answers = answers
        self._readers = [asyncio.create_task(self._read(answer)) for answer in answers]
        self.arrivals: dict[int, list[float]] = {}
        self.count = 0
        self._awaited = 0
        self._enough = asyncio.Event()

    async def _read(self, answer: aiohttp.ClientResponse) -> None:
        rest = b""
        while chunk := await answer.content.readany():
            now = time.perf_counter()
            data = rest + chunk
            end = 0
            for found in _MARK.finditer(data):
                self.arrivals.setdefault(int(found[1]), []).append(now)
                self.count += 1
                end = found.end()
            if self.count >= self._awaited:
                self._enough.set()
            rest = data[max(end, len(data) - len("mark-") - MARK_DIGITS) :]

    async def caught_up(self, count: int) -> None:
        """Until so many events have come in all, or patience is over: what is missing then shows in the figures."""
        self._awaited = count
        self._enough.clear()
        if self.count < count:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), _PATIENCE)

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for answer in self._answers:
            answer.close()


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"{WATCHERS} watchers of a namespace; status patches of pods of 4 KB"
    return Report(NAME, title, _rows(measured), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    marks = itertools.count()
    async with connect_all(sides) as clients:
        names = await fill(clients, "w", PODS_WATCHED, SIZE)

        async def measure(client: Client, _: int) -> dict[str, float]:
            watchers = Watchers([await client.stream(f"{PODS}?watch=1&resourceVersion=0") for _ in range(WATCHERS)])
            await asyncio.sleep(1)  # what is there already comes first, without marks or with old ones
            try:
                watchers.arrivals.clear()
                steady = await _steady(client, watchers, names, marks, options.seconds)
                watchers.count = 0
                return steady | await _burst(client, watchers, names, marks, options.seconds)
            finally:
                await watchers.close()

        return await take_turns(clients, options.rounds, measure)


async def _steady(client: Client, watchers: Watchers, names: list[str], marks: Iterator[int], seconds: float) -> dict[str, float]:
    """A modest rate, so that what is measured is the way of an event and not a queue."""
    sent: dict[int, float] = {}
    acknowledged: list[float] = []

    async def write(mark: int, name: str) -> None:
        sent[mark] = time.perf_counter()
        await client.send(Call("PATCH", pod_path(name, "status"), status_patch(mark), MERGE_PATCH))
        acknowledged.append(time.perf_counter() - sent[mark])

    watchers.count = 0
    total = int(seconds * WRITES_PER_SECOND)
    with Cost(client.side) as cost:
        async with asyncio.TaskGroup() as group:
            for number in range(total):
                group.create_task(write(next(marks), names[number % len(names)]))
                await asyncio.sleep(1 / WRITES_PER_SECOND)
        await watchers.caught_up(total * WATCHERS)
    delays = [arrival - sent[mark] for mark in sent for arrival in watchers.arrivals.get(mark, ())]
    figures = load_figures(acknowledged, cost)
    return {
        "ack_p50": figures["p50"],
        "event_p50": percentile(delays, 0.5) * 1000,
        "event_p99": percentile(delays, 0.99) * 1000,
        "steady_busy": cost.busy,
        "missing": total * WATCHERS - len(delays),
    }


async def _burst(client: Client, watchers: Watchers, names: list[str], marks: Iterator[int], seconds: float) -> dict[str, float]:
    """As fast as a few writers can, until the last watcher has the last event."""

    def patch(index: int) -> Call:
        return Call("PATCH", pod_path(names[index % len(names)], "status"), status_patch(next(marks)), MERGE_PATCH)

    with Cost(client.side) as cost:
        written = await repeat(client, seconds, patch, BURST_WRITERS)
        await watchers.caught_up(int(written["count"]) * WATCHERS)
    return {
        "events": watchers.count / cost.seconds,
        "event_cpu": cost.server_cpu / watchers.count * 1e6,
        "client_event_cpu": cost.client_cpu / watchers.count * 1e6,
        "busy": cost.busy,
    }


def _rows(measured: Measured) -> list[Row]:
    steady = f"at {WRITES_PER_SECOND} writes/s: "
    return [
        row_of(measured, "ack_p50", f"{steady}sent → acknowledged, p50", "ms"),
        row_of(measured, "event_p50", f"{steady}sent → event at a watcher, p50", "ms"),
        row_of(measured, "event_p99", f"{steady}sent → event at a watcher, p99", "ms"),
        row_of(measured, "missing", f"{steady}events that never came", "", ""),
        row_of(measured, "events", f"{BURST_WRITERS} writers at full speed: events", "/s", MORE),
        row_of(measured, "event_cpu", "… server CPU per event", "µs"),
        row_of(measured, "client_event_cpu", "… client CPU per event", "µs", ""),
        row_of(measured, "busy", "… client's share of its core", "", ""),
    ]
