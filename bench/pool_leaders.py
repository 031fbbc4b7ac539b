"""Controllers killed in mid-rollout: nobody is restarted twice, and the rollout goes on as soon as somebody leads again."""

import asyncio
import os
import signal
import time

from bench import pools
from bench.load import Call, Client
from bench.pool_objects import INSTANCES, POOLS, cores_patch, pool
from bench.pool_rollouts import MERGE_PATCH
from bench.program import Up
from bench.report import Row
from bench.sides import Options

LEASE = 15.0


async def rows(up: Up, client: Client, options: Options) -> list[Row]:
    count = options.pick(200, 40)
    annotations = {"simulated.herder.dev/boot": "0s", "simulated.herder.dev/shutdown": "0s"}
    running = asyncio.create_task(pools.until_running(client, count))
    await client.send(Call("POST", POOLS, pool("led", count, annotations)))
    await running
    made: list[tuple[float, str]] = []
    follower = asyncio.create_task(_follow(client, made))
    await asyncio.sleep(1)
    known = len(made)
    await client.send(Call("PATCH", f"{POOLS}/led", cores_patch(2, 1), MERGE_PATCH))

    async def a_quarter() -> bool:
        return len(made) >= known + count // 4

    async def all_of_them() -> bool:
        return len({name for _, name in made[known:]}) >= count

    await pools.until(a_quarter, 0.02)
    for process in up.controllers():
        os.kill(process, signal.SIGKILL)
    killed = time.perf_counter()
    await pools.until(all_of_them)
    follower.cancel()
    after = [at - killed for at, _ in made if at > killed + 0.2]
    twice = len(made) - known - count
    await client.send(Call("DELETE", f"{POOLS}/led"))
    await pools.until_none(client)
    resumed = min(after)
    return [
        Row(
            "controllers killed in mid-rollout: until the next restart",
            "s",
            resumed,
            None,
            "less",
            f"≤ {LEASE + 2:g}",
            resumed <= LEASE + 2,
        ),
        Row("controllers killed in mid-rollout: restarts that were repeated", "", float(twice), None, "less", "0", twice == 0),
    ]


async def _follow(client: Client, made: list[tuple[float, str]]) -> None:
    seen: set[str] = set()
    async with pools.watched(client, INSTANCES) as events:
        async for event in events:
            metadata = event["object"]["metadata"]
            if event["type"] == "ADDED" and metadata["uid"] not in seen:
                seen.add(metadata["uid"])
                made.append((time.perf_counter(), metadata["name"]))
