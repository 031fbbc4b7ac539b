"""Thousands of simulated nodes in one process: how long until all are Ready, what they take, and what they cost when idle."""

import asyncio
import time

import msgspec

from bench.load import Call, connect
from bench.program import Up, herder_up
from bench.report import Report, Row
from bench.sides import Options, temporary
from herder.api import labels
from herder.nodes.fleet import RENEWALS_PER_SECOND

NAME = "fleet"
_IDLE_SECONDS = 30
_LOOK_EVERY = 10
_PARTS = ("engine", "controllers", "agents")


def run(options: Options) -> Report:
    count = options.pick(5000, 500)
    with temporary(options) as folder, herder_up(folder / "up", count) as up:
        ready = asyncio.run(_ready(up))
        took, memory, used = up.seconds, up.memory(), up.cpu()
        # As long as it takes until each node has spoken once.
        beating = _idle(up, max(_IDLE_SECONDS, count / RENEWALS_PER_SECOND))
    # A heartbeat each 50 minutes: none falls into what is measured, and what is left is everything else.
    with temporary(options) as folder, herder_up(folder / "up", count, "simulated", "--heartbeat", "3000") as up:
        still = _idle(up, _IDLE_SECONDS)
    rows = [
        Row("nodes that are Ready", "", float(ready), aim=f"{count:,}", met=ready == count),
        Row("from the start of the program until then", "s", took, aim="≤ 30 s", met=took <= 30),
        Row("processor time until then, all processes", "s", sum(used.values())),
        *(Row(f"memory of {name}", "MB", memory[name] / 1e6) for name in _PARTS),
        *(Row(f"idle: {name}'s share of a core, with heartbeats", "%", beating[name]) for name in _PARTS),
        Row("idle: all of them, besides heartbeats", "%", sum(still.values()), aim="< 5 %", met=sum(still.values()) < 5),
    ]
    return Report(NAME, f"{count:,} simulated nodes in one process", rows, sides=("herder", ""))


def _idle(up: Up, seconds: float) -> dict[str, float]:
    """Once every node has the label that says how many others could take its guests: those are written for a minute."""
    asyncio.run(_settled(up))
    before = up.cpu()
    time.sleep(seconds)
    return {name: (used - before[name]) / seconds * 100 for name, used in up.cpu().items()}


async def _settled(up: Up) -> None:
    async with connect(up.side) as client:
        left = -1
        while left:
            await asyncio.sleep(_LOOK_EVERY)
            listed = msgspec.json.decode(await client.send(Call("GET", "/api/v1/nodes")))["items"]
            left = sum(labels.MIGRATABILITY_LEVEL not in node["metadata"]["labels"] for node in listed)
        await asyncio.sleep(_LOOK_EVERY)  # for those whose number was still another one


async def _ready(up: Up) -> int:
    async with connect(up.side) as client:
        listed = msgspec.json.decode(await client.send(Call("GET", "/api/v1/nodes")))["items"]
    conditions = [one for node in listed for one in node["status"].get("conditions", ())]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
