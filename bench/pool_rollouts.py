"""A rollout: how soon after a machine is ready again the next one is restarted, and what the pool writes for each."""

import asyncio
import time

from bench import pools
from bench.load import Call, Client, percentile
from bench.pool_objects import INSTANCES, MACHINES, POOLS, cores_patch, pool
from bench.report import Row
from bench.sides import Options
from herder.api import labels

MERGE_PATCH = "application/merge-patch+json"
MOST_MS = 100.0
MOST_WRITES = 1.2


async def rows(client: Client, options: Options) -> list[Row]:
    count = options.pick(1000, 50)
    annotations = {"simulated.herder.dev/boot": "0s", "simulated.herder.dev/shutdown": "0s"}
    running = asyncio.create_task(pools.until_running(client, count))
    await client.send(Call("POST", POOLS, pool("rolled", count, annotations)))
    await running
    found: list[Row] = []
    for cores, most in ((2, 1), (3, "10%")):
        slots = 1 if most == 1 else max(1, count // 10)
        gaps, written, seconds = await _roll(client, count, cores, most, slots)
        p99 = percentile(gaps, 0.99) * 1000
        what = f"rollout, maxUnavailable {most}"
        found += [
            Row(f"{what}: p99 from a free slot to the next restart", "ms", p99, None, "less", f"≤ {MOST_MS:g}", p99 <= MOST_MS),
            Row(
                f"{what}: writes of the pool for each machine",
                "",
                written / count,
                None,
                "less",
                f"≤ {MOST_WRITES}",
                written / count <= MOST_WRITES,
            ),
            Row(f"{what}: from the change to the last machine", "s", seconds),
        ]
    await client.send(Call("DELETE", f"{POOLS}/rolled"))
    await pools.until_none(client)
    return found


async def _roll(client: Client, count: int, cores: int, most: int | str, slots: int) -> tuple[list[float], int, float]:
    """The nth machine that is ready again frees the slot of the one that is restarted as the (n + slots)th."""
    freed: list[float] = []
    restarted: list[float] = []
    written: list[float] = []
    statuses = asyncio.create_task(_status_writes(client, written))
    followers = [
        asyncio.create_task(_ready_again(client, count, freed)),
        asyncio.create_task(_restarts(client, count, restarted, written)),
    ]
    await asyncio.sleep(0.5)
    began = time.perf_counter()
    await client.send(Call("PATCH", f"{POOLS}/rolled", cores_patch(cores, most), MERGE_PATCH))
    await asyncio.gather(*followers)
    seconds = time.perf_counter() - began
    await asyncio.sleep(2)
    statuses.cancel()
    # Of which one is our own.
    return [max(0.0, later - free) for free, later in zip(freed, restarted[slots:], strict=False)], len(written) - 1, seconds


async def _status_writes(client: Client, written: list[float]) -> None:
    async with pools.watched(client, POOLS) as events:
        async for event in events:
            if event["type"] == "MODIFIED":
                written.append(time.perf_counter())


async def _ready_again(client: Client, count: int, freed: list[float]) -> None:
    first: dict[str, str] = {}
    again: set[str] = set()
    async with pools.watched(client, INSTANCES) as events:
        async for event in events:
            instance = event["object"]
            name, uid = instance["metadata"]["name"], instance["metadata"]["uid"]
            if event["type"] == "DELETED":
                continue
            first.setdefault(name, uid)
            conditions = instance.get("status", {}).get("conditions", ())
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
            if ready and uid != first[name] and name not in again:
                again.add(name)
                freed.append(time.perf_counter())
            if len(again) >= count:
                return


async def _restarts(client: Client, count: int, restarted: list[float], written: list[float]) -> None:
    """And every write of a machine's spec: nobody but the pool does that here."""
    asked: dict[str, str] = {}
    generations: dict[str, int] = {}
    fresh: set[str] = set()
    async with pools.watched(client, MACHINES) as events:
        async for event in events:
            machine = event["object"]
            name = machine["metadata"]["name"]
            request = machine["metadata"].get("annotations", {}).get(labels.RESTART_REQUEST, "")
            known = asked.setdefault(name, request)
            generation = machine["metadata"]["generation"]
            if generations.setdefault(name, generation) != generation:
                generations[name] = generation
                written.append(time.perf_counter())
            if request != known and name not in fresh:
                fresh.add(name)
                restarted.append(time.perf_counter())
            if len(fresh) >= count:
                return
