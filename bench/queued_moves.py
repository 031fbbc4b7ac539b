"""A thousand migrations that wait: what they cost while nothing happens, and when one of those under way ends.

No node takes new pods, so those that have begun hold their places. Beside it runs what KubeVirt does: each that waits asks again
after 5 s.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.load import Call, each
from bench.report import LESS, Report, Row, promised
from bench.rounds import Figures, Measured
from bench.sides import Options, temporary
from bench.turns_herd import ASKING, HERDER, MIGRATIONS, Controllers, Herd, follow, herd, migration

NAME = "queued-moves"
NODES = 20
LIMIT = 5
MOST_LOOKS = 20
# How long is watched what one that ends brings about.
AFTER_END = 5.0
DAY = 86_400


def run(options: Options) -> Report:
    count, seconds = options.pick(1000, 100), options.pick(30, 10)
    measured = asyncio.run(_measure(options, count, seconds))
    rows = [
        _none(_row(measured, "looks", "looks at a migration a second, nothing happens", "/s")),
        _none(_row(measured, "requests", "requests a second, nothing happens", "/s")),
        _row(measured, "cpu", "controllers' share of a core meanwhile", "%"),
        _row(measured, "cpu before", "and before anybody waited", "%"),
        _few(_row(measured, "looks at end", f"looks at a migration in the {AFTER_END:.0f} s after one has ended", "")),
        _row(measured, "next", "until the next has begun", "ms"),
    ]
    notes = [f"requests are those of everybody but for leases; {seconds} s each"]
    return Report(NAME, f"{count:,} migrations wait, {LIMIT} are under way", rows, notes, (HERDER, ASKING), measured.rounds)


def _row(measured: Measured, figure: str, what: str, unit: str) -> Row:
    return Row(what, unit, measured.median(HERDER, figure), measured.median(ASKING, figure), LESS)


def _none(row: Row) -> Row:
    return promised(row, "0", row.ours is not None and row.ours < 0.1)


def _few(row: Row) -> Row:
    return promised(row, f"<= {MOST_LOOKS}", row.ours is not None and row.ours <= MOST_LOOKS)


async def _measure(options: Options, count: int, seconds: float) -> Measured:
    measured = Measured()
    with temporary(options) as folder:
        async with herd(folder, NODES) as cluster:
            await cluster.settings(parallelMigrationsPerCluster=LIMIT, unschedulablePendingTimeout=DAY)
            async with cluster.controllers(HERDER) as controllers:
                await cluster.make([f"vm-{number}" for number in range(count)])
                await cluster.at_rest()
                before = await _idle(cluster, controllers, seconds)
                for number in range(NODES):
                    await cluster.node(f"node-{number + 1}", unschedulable=True)
                await _queue(cluster, count)
                await cluster.at_rest()
                figures = await _side(cluster, controllers, seconds)
            measured.add(HERDER, figures | {"cpu before": before["cpu"]})
            async with cluster.controllers(ASKING) as controllers:
                # One that asks again never comes to rest.
                await asyncio.sleep(options.pick(20, 10))
                measured.add(ASKING, await _side(cluster, controllers, seconds))
    return measured


async def _queue(cluster: Herd, count: int) -> None:
    names = [f"vm-{number}" for number in range(count)]
    await each(lambda name: cluster.client.send(Call("POST", MIGRATIONS, migration(f"move-{name}", name))), names)


async def _side(cluster: Herd, controllers: Controllers, seconds: float) -> Figures:
    idle = await _idle(cluster, controllers, seconds)
    ended = await _counted(controllers.reconciles, lambda: _end_one(cluster))
    return idle | {"looks at end": ended[0], "next": ended[1]}


async def _idle(cluster: Herd, controllers: Controllers, seconds: float) -> Figures:
    looks, cpu, requests = await controllers.reconciles(), controllers.cpu, await cluster.requests()
    await asyncio.sleep(seconds)
    # Asking for them is a request as well.
    asked = await cluster.requests() - requests
    used = controllers.cpu - cpu
    return {"looks": (await controllers.reconciles() - looks) / seconds, "requests": asked / seconds, "cpu": 100 * used / seconds}


async def _counted(count: Callable[[], Awaitable[float]], action: Callable[[], Awaitable[float]]) -> tuple[float, float]:
    before = await count()
    found = await action()
    await asyncio.sleep(AFTER_END)
    return await count() - before, found


async def _end_one(cluster: Herd) -> float:
    """Until the next has begun: milliseconds from the answer to the delete of one that is under way, which cancels it."""
    listed = await cluster.list(MIGRATIONS)
    begun = {one["metadata"]["name"] for one in listed["items"] if one.get("status", {}).get("phase") == "Scheduling"}
    watch = await cluster.client.stream(f"{MIGRATIONS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")

    def is_next(thing: Any) -> bool:
        return thing.get("status", {}).get("phase") == "Scheduling" and thing["metadata"]["name"] not in begun

    began = time.perf_counter()
    await cluster.client.send(Call("DELETE", f"{MIGRATIONS}/{min(begun)}"))
    await follow(watch, is_next)
    return 1000 * (time.perf_counter() - began)
