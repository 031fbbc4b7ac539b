"""Pools: made, rolled out, looked at and led on, each beside what the same would take without a pool."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bench import pool_leaders, pool_plans, pool_returns, pool_rollouts
from bench.load import Call, Client, connect, each
from bench.machines import settled_writes, writes, writes_by_resource
from bench.objects import NAMESPACE, namespace
from bench.pool_objects import INSTANCES, MACHINES, POOLS, machine, pool
from bench.program import Up, herder_up
from bench.report import Report, Row
from bench.sides import Options, temporary

NAME = "pools"
# A thousand machines of the last template, which ask for 300m each, need 38 of them.
NODES = 40
# What one look may take with 5,000 machines, in milliseconds.
MOST_LOOK = 50.0
# How often counts may be written, in a second; the watch that counts them may be a little late for the first.
MOST_STATUSES = 1.05
_LOOKS = re.compile(r'^herder_reconcile_duration_seconds_(count|sum)\{[^}]*controller="pools"[^}]*\} (\S+)', re.MULTILINE)
_AT_ONCE = {"simulated.herder.dev/boot": "0s", "simulated.herder.dev/shutdown": "0s"}


def run(options: Options) -> Report:
    with temporary(options) as folder:
        with herder_up(folder / "up", NODES) as up:
            rows = asyncio.run(_measure(up, options))
        rows += pool_returns.rows(folder, options)
    rows += pool_plans.rows()
    notes = ["on the right: the same machines, written by 64 writers by hand, on the same engine, taking turns"]
    return Report(
        NAME, f"pools of {options.pick(1000, 100):,} simulated machines on {NODES} nodes", rows, notes, ("pool", "by hand")
    )


async def _measure(up: Up, options: Options) -> list[Row]:
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        rows = await _creates(client, options)
        rows += await pool_rollouts.rows(client, options)
        rows += await pool_leaders.rows(up, client, options)
        rows += await _large(client, options)
    return rows


async def _creates(client: Client, options: Options) -> list[Row]:
    """From the first write to the last machine Running; who comes first changes from round to round."""
    count = options.pick(1000, 100)
    seconds: dict[str, list[float]] = {"pool": [], "hand": []}
    made: dict[str, list[float]] = {"pool": [], "hand": []}
    for number in range(options.pick(4, 2)):
        for side in ("pool", "hand") if number % 2 else ("hand", "pool"):
            took, written = await _create(client, side, count)
            seconds[side].append(took)
            made[side].append(written / count)
    ours, theirs = sum(seconds["pool"]) / len(seconds["pool"]), sum(seconds["hand"]) / len(seconds["hand"])
    more = min(made["pool"]) - min(made["hand"])
    return [
        Row("from the first write to the last Running", "s", ours, theirs, "less", "≤ 1.1 ×", ours <= 1.1 * theirs),
        Row("writes for each machine, all counted", "", min(made["pool"]), min(made["hand"]), "less", "≤ 0.2 more", more <= 0.2),
    ]


async def _create(client: Client, side: str, count: int) -> tuple[float, float]:
    before, began = await writes(client), time.perf_counter()
    running = asyncio.create_task(until_running(client, count))
    if side == "pool":
        await client.send(Call("POST", POOLS, pool("herd", count, _AT_ONCE)))
    else:
        await each(
            lambda name: client.send(Call("POST", MACHINES, machine(name, _AT_ONCE))), [f"herd-{one + 1}" for one in range(count)]
        )
    await running
    took = time.perf_counter() - began
    written = await settled_writes(client) - before
    if side == "pool":
        await client.send(Call("DELETE", f"{POOLS}/herd"))
    else:
        await client.send(Call("DELETE", MACHINES))
    await until_none(client)
    return took, written


async def _large(client: Client, options: Options) -> list[Row]:
    """Machines that are kept off cost nothing but their objects: what is measured is the pool."""
    count = options.pick(5000, 500)
    statuses: list[float] = []
    counting = asyncio.create_task(_note_statuses(client, "large", statuses))
    await client.send(Call("POST", POOLS, pool("large", count, {}, running=False)))

    async def all_there() -> bool:
        return (await pool_status(client, "large")).get("updatedReplicas") == count

    await until(all_there)
    await settled_writes(client)
    counting.cancel()
    pace = (len(statuses) - 1) / max(1.0, statuses[-1] - statuses[0])
    looks, seconds = await _looks(client)
    for number in range(20):
        patch = msgspec.json.encode({"metadata": {"annotations": {"bench.herder.dev/touched": str(number)}}})
        await client.send(Call("PATCH", f"{POOLS}/large", patch, "application/merge-patch+json"))
        await asyncio.sleep(0.2)
    after, spent = await _looks(client)
    look = (spent - seconds) / max(1, after - looks) * 1000
    idle_before, idle = await writes_by_resource(client), options.pick(600, 20)
    await asyncio.sleep(idle)
    written = await writes_by_resource(client) - idle_before
    # Nodes say every five minutes that they are as they were, as kubelets do, whatever runs on them.
    reports = written.pop("nodes", 0)
    idle_writes = written.total()
    await client.send(Call("DELETE", f"{POOLS}/large"))
    kept = f"{count:,} machines: writes of the status in a second, while they are made"
    return [
        Row(kept, "", pace, None, "less", "≤ 1", pace <= MOST_STATUSES),
        Row(f"{count:,} machines: a look that changes nothing", "ms", look, None, "less", f"≤ {MOST_LOOK:g}", look <= MOST_LOOK),
        Row(f"{count:,} machines: writes in {idle} idle seconds", "", idle_writes, None, "less", "0", idle_writes == 0),
        Row(f"the same: reports of {NODES} nodes about themselves", "", reports),
    ]


async def _note_statuses(client: Client, name: str, times: list[float]) -> None:
    """When each write of this pool's status was heard of."""
    last: Any = None
    async with watched(client, POOLS) as events:
        async for event in events:
            found = event["object"]
            if found["metadata"]["name"] == name and (status := found.get("status")) and status != last:
                last = status
                times.append(time.monotonic())


async def _looks(client: Client) -> tuple[float, float]:
    """How many reconciles of pools there were, and how long they took together."""
    text = (await client.send(Call("GET", "/metrics"))).decode()
    found = {"count": 0.0, "sum": 0.0}
    for what, value in _LOOKS.findall(text):
        found[what] += float(value)
    return found["count"], found["sum"]


async def pool_status(client: Client, name: str) -> dict[str, Any]:
    return msgspec.json.decode(await client.send(Call("GET", f"{POOLS}/{name}"))).get("status", {})


@asynccontextmanager
async def watched(client: Client, path: str) -> AsyncGenerator[AsyncGenerator[Any]]:
    answer = await client.stream(f"{path}?watch=1")

    async def events() -> AsyncGenerator[Any]:
        async for line in answer.content:
            yield msgspec.json.decode(line)

    try:
        yield events()
    finally:
        answer.close()


async def until_running(client: Client, count: int) -> None:
    running: set[str] = set()
    async with watched(client, MACHINES) as events:
        async for event in events:
            if event["object"].get("status", {}).get("printableStatus") == "Running":
                running.add(event["object"]["metadata"]["name"])
            if len(running) >= count:
                return


async def until(holds: Callable[[], Awaitable[bool]], every: float = 0.2) -> None:
    while not await holds():  # noqa: ASYNC110 - what is waited for happens in another process
        await asyncio.sleep(every)


async def until_none(client: Client) -> None:
    for path in (MACHINES, INSTANCES, f"/api/v1/namespaces/{NAMESPACE}/pods"):

        async def empty(path: str = path) -> bool:
            return not msgspec.json.decode(await client.send(Call("GET", f"{path}?limit=1")))["items"]

        await until(empty)
