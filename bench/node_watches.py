"""A cluster's everyday: a few who watch all pods, one agent per node who watches its own, and 500 writes a second."""

import asyncio
import itertools
import time
from collections.abc import Iterator

import msgspec

from bench.load import MERGE_PATCH, WRITERS, Call, Client, Cost, connect_all, percentile, pod_path
from bench.objects import PODS, pod, status_patch
from bench.report import Report, Row, at_most, row_of
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both
from bench.watches import Watchers

NAME = "node-watches"
SEE_ALL = 10
NODES = 190
WRITES_PER_SECOND = 500
SIZE = 4096


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"{SEE_ALL} watchers of all pods and {NODES} of one node's; {WRITES_PER_SECOND} status patches a second"
    return Report(NAME, title, _rows(measured), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    marks = itertools.count()
    async with connect_all(sides) as clients:
        for client in clients:
            for number in range(NODES):
                await client.send(Call("POST", PODS, _on_node(number)))

        async def measure(client: Client, _: int) -> dict[str, float]:
            paths = [PODS + "?watch=1&resourceVersion=0"] * SEE_ALL
            paths += [f"{PODS}?watch=1&resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-{number}" for number in range(NODES)]
            watchers = Watchers([await client.stream(path) for path in paths])
            await asyncio.sleep(1)
            try:
                watchers.arrivals.clear()
                return await _write(client, watchers, marks, options.seconds)
            finally:
                await watchers.close()

        return await take_turns(clients, options.rounds, measure)


def _on_node(number: int) -> bytes:
    document = msgspec.json.decode(pod(f"n-{number}", SIZE))
    document["spec"]["nodeName"] = f"node-{number}"
    return msgspec.json.encode(document)


async def _write(client: Client, watchers: Watchers, marks: Iterator[int], seconds: float) -> dict[str, float]:
    """At a fixed rate, whatever the answers do: what falls behind shows as delay."""
    sent: dict[int, float] = {}
    answered: dict[int, float] = {}
    # Connections stay. Were each late write to open its own, a moment's delay would become minutes of handshakes.
    connections = asyncio.Semaphore(WRITERS)
    # They are there before: clients of a cluster do not all come in the very moment in which they write.
    await asyncio.gather(*(client.send(Call("GET", "/version")) for _ in range(WRITERS)))

    async def write(mark: int, number: int) -> None:
        sent[mark] = time.perf_counter()
        async with connections:
            await client.send(Call("PATCH", pod_path(f"n-{number}", "status"), status_patch(mark), MERGE_PATCH))
        answered[mark] = time.perf_counter()

    watchers.count = 0
    total = int(seconds * WRITES_PER_SECOND)
    began = time.perf_counter()
    with Cost(client.side) as cost:
        async with asyncio.TaskGroup() as group:
            for number in range(total):
                group.create_task(write(next(marks), number % NODES))
                await asyncio.sleep(max(0.0, began + (number + 1) / WRITES_PER_SECOND - time.perf_counter()))
        await watchers.caught_up(total * (SEE_ALL + 1))
    delays = _delays(sent, watchers)
    # The client cannot see the commit itself, only that it lies before the answer: events may well come sooner.
    after = _delays(answered, watchers)
    return {
        "event_p50": percentile(delays, 0.5) * 1000,
        "event_p99": percentile(delays, 0.99) * 1000,
        "answered_p99": percentile(after, 0.99) * 1000,
        "missing": total * (SEE_ALL + 1) - len(delays),
        "rate": total / cost.seconds,
        "write_cpu": cost.server_cpu / total * 1000,
        "busy": cost.busy,
    }


def _delays(since: dict[int, float], watchers: Watchers) -> list[float]:
    return [arrival - began for mark, began in since.items() for arrival in watchers.arrivals.get(mark, ())]


def _rows(measured: Measured) -> list[Row]:
    return [
        row_of(measured, "event_p50", "sent → event at a watcher, p50", "ms"),
        at_most(row_of(measured, "event_p99", "sent → event at a watcher, p99", "ms"), 50, "≤ 50 ms"),
        row_of(measured, "answered_p99", "answered → event at a watcher, p99", "ms"),
        row_of(measured, "missing", "events that never came", "", ""),
        row_of(measured, "rate", "writes that were kept up with", "/s", ""),
        row_of(measured, "write_cpu", "server CPU per write, its events included", "ms"),
        row_of(measured, "busy", "client's share of its core", "", ""),
    ]
