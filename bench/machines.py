"""Simulated machines from created to Running: how many writes each costs, and how near to the engine's own speed that is."""

import asyncio
import re
import time
from collections import Counter
from typing import Any

import msgspec

from bench.load import Call, Client, connect, each, repeat
from bench.objects import NAMESPACE, PODS, Pods, namespace
from bench.program import Up, herder_up
from bench.report import Report, Row
from bench.sides import Options, temporary

NAME = "machines"
MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
NODES = 20
MOST_WRITES = 15
SHARE = 0.7
WRITE_VERBS = ("create", "update", "patch", "apply", "delete", "deletecollection")
# By the clock, or not stored at all.
PASSING = ("leases", "reviews")
# Events of which a namespace has too many are refused, and were asked for all the same.
_LINE = re.compile(
    r'^herder_apiserver_requests_total\{code="(?:2\d\d|429)",resource="([^"]*)",verb="([^"]*)"\} (\S+)', re.MULTILINE
)
_IDLE_SECONDS = 20


def run(options: Options) -> Report:
    with temporary(options) as folder, herder_up(folder / "up", NODES) as up:
        figures = asyncio.run(_measure(up, options))
    count = options.pick(1000, 200)
    rows = [
        Row(
            "writes for each machine, all counted",
            "",
            figures["writes"],
            better="less",
            aim="≤ 15",
            met=figures["writes"] <= MOST_WRITES,
        ),
        Row(
            "writes a second meanwhile",
            "/s",
            figures["rate"],
            figures["raw"],
            "more",
            "70 %",
            figures["rate"] >= SHARE * figures["raw"],
        ),
        Row("engine CPU for each write", "ms", figures["engine"], figures["raw engine"], "less"),
        Row("machines a second", "/s", figures["machines"]),
        Row("from the first create to the last Running", "s", figures["seconds"]),
        *(Row(f"CPU of {name} for each machine", "ms", figures[f"cpu {name}"]) for name in ("engine", "controllers", "agents")),
        *(Row(f"idle: {name}'s share of a core", "%", figures[f"idle {name}"]) for name in ("engine", "controllers", "agents")),
    ]
    notes = ["on the right: durable creates of a 4 KB pod by 64 writers, on the same engine, before and after, nobody else at work"]
    return Report(NAME, f"{count:,} simulated machines on {NODES} nodes, created → Running", rows, notes, ("herder", "bare writes"))


async def _measure(up: Up, options: Options) -> dict[str, float]:
    count = options.pick(1000, 200)
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        before = await _bare(up, client, options, "before")
        before_all, cpu, began = await writes(client), up.cpu(), time.perf_counter()
        running = asyncio.create_task(until_running(client, count))
        await each(lambda name: client.send(Call("POST", MACHINES, machine(name))), [f"vm-{one}" for one in range(count)])
        await running
        seconds = time.perf_counter() - began
        made, used = await writes(client) - before_all, up.cpu()
        # Events are told a little later.
        made_in_all = await settled_writes(client) - before_all
        after = await _bare(up, client, options, "after")
        idle = await _idle(up)
    figures = {"writes": made_in_all / count, "rate": made / seconds, "machines": count / seconds, "seconds": seconds}
    figures |= {"raw": (before["rate"] + after["rate"]) / 2, "raw engine": (before["engine"] + after["engine"]) / 2}
    figures |= {f"cpu {name}": (used[name] - cpu[name]) / count * 1000 for name in cpu}
    figures["engine"] = (used["engine"] - cpu["engine"]) / made * 1000
    return figures | {f"idle {name}": share * 100 for name, share in idle.items()}


async def _bare(up: Up, client: Client, options: Options, name: str) -> dict[str, float]:
    """Pods that nobody places: how many a second, and what each costs the engine."""
    pods = Pods(4096, scheduler="nobody")
    await repeat(client, 1.0, lambda index: Call("POST", PODS, pods.named(pods.name(f"warm-{name}", index))))
    cpu, known = up.cpu()["engine"], await writes(client)
    found = await repeat(client, options.seconds, lambda index: Call("POST", PODS, pods.named(pods.name(name, index))))
    return {"rate": found["rate"], "engine": (up.cpu()["engine"] - cpu) / (await writes(client) - known) * 1000}


async def settled_writes(client: Client) -> float:
    """All writes, once no more come."""
    known = -1.0
    while (now := await writes(client)) > known:
        known = now
        await asyncio.sleep(2)
    return known


async def _idle(up: Up) -> dict[str, float]:
    before = up.cpu()
    await asyncio.sleep(_IDLE_SECONDS)
    after = up.cpu()
    return {name: (after[name] - before[name]) / _IDLE_SECONDS for name in before}


async def until_running(client: Client, count: int) -> None:
    answer = await client.stream(f"{MACHINES}?watch=1")
    running: set[str] = set()
    async for line in answer.content:
        event: Any = msgspec.json.decode(line)
        if event["object"].get("status", {}).get("printableStatus") == "Running":
            running.add(event["object"]["metadata"]["name"])
        if len(running) >= count:
            break
    answer.close()


async def writes(client: Client) -> float:
    return sum((await writes_by_resource(client)).values())


async def writes_by_resource(client: Client) -> Counter[str]:
    text = (await client.send(Call("GET", "/metrics"))).decode()
    found: Counter[str] = Counter()
    for resource, verb, value in _LINE.findall(text):
        if verb in WRITE_VERBS and not any(one in resource for one in PASSING):
            found[resource] += int(float(value))
    return found


def machine(name: str) -> bytes:
    spec = {"domain": {"memory": {"guest": "64Mi"}, "cpu": {"cores": 1}}}
    document = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }
    return msgspec.json.encode(document)
