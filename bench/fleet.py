"""Thousands of simulated nodes in one process: how long until all are Ready, what they take, and what they cost when idle."""

import asyncio
import time

import msgspec

from bench.load import Call, connect
from bench.program import Up, herder_up
from bench.report import Report, Row
from bench.sides import Options, temporary

NAME = "fleet"
_IDLE_SECONDS = 30
_PARTS = ("engine", "controllers", "agents")


def run(options: Options) -> Report:
    count = options.pick(5000, 500)
    with temporary(options) as folder, herder_up(folder / "up", count) as up:
        ready = asyncio.run(_ready(up))
        memory = up.memory()
        before = up.cpu()
        time.sleep(_IDLE_SECONDS)
        idle = {name: (used - before[name]) / _IDLE_SECONDS * 100 for name, used in up.cpu().items()}
    rows = [
        Row("nodes that are Ready", "", float(ready), aim=f"{count:,}", met=ready == count),
        Row("from the start of the program until then", "s", up.seconds, aim="≤ 30 s", met=up.seconds <= 30),
        Row("processor time until then, all processes", "s", sum(before.values())),
        *(Row(f"memory of {name}", "MB", memory[name] / 1e6) for name in _PARTS),
        *(Row(f"idle: {name}'s share of a core", "%", idle[name]) for name in _PARTS),
        Row("idle: all of them", "%", sum(idle.values()), aim="< 5 %", met=sum(idle.values()) < 5),
    ]
    return Report(NAME, f"{count:,} simulated nodes in one process", rows, sides=("herder", ""))


async def _ready(up: Up) -> int:
    async with connect(up.side) as client:
        listed = msgspec.json.decode(await client.send(Call("GET", "/api/v1/nodes")))["items"]
    conditions = [one for node in listed for one in node["status"].get("conditions", ())]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
