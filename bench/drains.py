"""Nodes are emptied under limits: how long a place stays unused although somebody waits for it.

Three nodes of 50 simulated guests each are emptied at once onto three others, and then back. Beside it runs what KubeVirt does: a
migration that has to wait asks again after 5 s (handleTargetPodCreation in pkg/virt-controller/watch/migration).
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.load import percentile
from bench.report import LESS, Report, Row, at_most
from bench.rounds import Figures, Measured
from bench.sides import Options, temporary
from bench.slots import Slots
from bench.turns_herd import ASKING, HERDER, MIGRATIONS, Herd, follow, herd
from herder.api.defaults import NODE_DRAIN_TAINT_KEY
from herder.rules.migration import Limits

NAME = "drains"
LIMITS = Limits(cluster=5, outbound=2, inbound=2)
HALVES = [["node-1", "node-2", "node-3"], ["node-4", "node-5", "node-6"]]
MOST_IDLE = 200.0
# A guest of 32Mi then takes half a second.
BANDWIDTH = "64Mi"


def run(options: Options) -> Report:
    guests = options.pick(150, 30)
    measured = asyncio.run(_measure(options, guests))
    rows = [
        at_most(_row(measured, "p99", "a free slot stays idle, p99", "ms"), MOST_IDLE, f"<= {MOST_IDLE:.0f} ms"),
        _row(measured, "p50", "p50", "ms"),
        _row(measured, "worst", "at most", "ms"),
        _row(measured, "seconds", "all nodes empty after", "s"),
        _row(measured, "reconciles", "looks at a migration, for each that is moved", ""),
        _row(measured, "cpu", "CPU of all controllers for each move", "ms"),
    ]
    title = f"{guests} guests leave 3 nodes ({LIMITS.cluster} at once, {LIMITS.outbound} from each node)"
    return Report(NAME, title, rows, sides=(HERDER, ASKING), rounds=measured.rounds)


def _row(measured: Measured, figure: str, what: str, unit: str) -> Row:
    return Row(what, unit, measured.median(HERDER, figure), measured.median(ASKING, figure), LESS)


async def _measure(options: Options, guests: int) -> Measured:
    measured = Measured()
    with temporary(options) as folder:
        async with herd(folder, 6) as cluster:
            await cluster.settings(
                parallelMigrationsPerCluster=LIMITS.cluster,
                parallelOutboundMigrationsPerNode=LIMITS.outbound,
                parallelInboundMigrationsPerNode=LIMITS.inbound,
                bandwidthPerMigration=BANDWIDTH,
            )
            await _fill(cluster, guests)
            full, empty = HALVES
            for _ in range(options.pick(2, 1)):
                for side in (HERDER, ASKING):
                    measured.add(side, await _drain(cluster, side, full, empty, guests))
                    full, empty = empty, full
    return measured


async def _fill(cluster: Herd, guests: int) -> None:
    for node in HALVES[1]:
        await cluster.node(node, unschedulable=True)
    async with cluster.controllers(HERDER):
        await cluster.make([f"vm-{number}" for number in range(guests)])


async def _drain(cluster: Herd, side: str, full: list[str], empty: list[str], guests: int) -> Figures:
    for node in empty:
        await cluster.node(node, unschedulable=None, taints=None)
    places = await cluster.places()
    slots = Slots(LIMITS)
    version = (await cluster.list(MIGRATIONS))["metadata"]["resourceVersion"]
    watch = await cluster.client.stream(f"{MIGRATIONS}?watch=1&resourceVersion={version}")

    def all_moved(thing: Any) -> bool:
        status = thing.get("status", {})
        name, source = thing["metadata"]["name"], status.get("sourceNode") or places[thing["spec"]["vmiName"]]
        slots.seen(name, status.get("phase", "Pending"), source, time.perf_counter())
        return slots.finished.total() >= guests

    async with cluster.controllers(side) as controllers:
        # One that asks again has nothing to ask yet.
        reconciles, cpu, began = await controllers.settled(), controllers.cpu, time.perf_counter()
        for node in full:
            await cluster.node(node, taints=[{"key": NODE_DRAIN_TAINT_KEY, "effect": "NoSchedule"}])
        await follow(watch, all_moved)
        seconds = time.perf_counter() - began
        looks, used = await controllers.reconciles() - reconciles, controllers.cpu - cpu
    if slots.finished["Failed"]:
        raise RuntimeError(f"{slots.finished['Failed']} of {guests} migrations failed")
    idle = [1000 * one for one in slots.idle]
    return {
        "p50": percentile(idle, 0.5),
        "p99": percentile(idle, 0.99),
        "worst": max(idle),
        "seconds": seconds,
        "reconciles": looks / guests,
        "cpu": 1000 * used / guests,
    }
