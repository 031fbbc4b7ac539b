"""Where pods go: the time of one decision at 5,000 nodes, and pods per second on one and the same real API server.

A decision of ours is measured in this process, with all that it takes: reading the pod, asking all rules about all nodes, assuming
the choice. kube-scheduler's is its own metric, scheduling_algorithm_duration, while it looks at all nodes too
(percentageOfNodesToScore: 100). For its pods per second it looks at as few as it does by itself. Nodes are objects only, nobody is
preempted.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.report import LESS, MORE, Report, Row
from bench.sides import Options, temporary
from herder.api.core import Node, Pod
from herder.kube.cache import Cache, Change
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.resources import NODES, PODS, Key
from herder.rules.placement import RULES, Offer, Snapshot, decide, needs_of
from tests.agreement.kube_scheduler import configuration, start_scheduler
from tests.engines.embedded import run_embedded
from tests.engines.engine import Engine
from tests.engines.install import install_on
from tests.engines.kubernetes import run_api_server
from tests.engines.processes import Child, free_ports

NAME = "placement"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
THEIR_NAME, OUR_NAME = "default-scheduler", "herder-scheduler"
METRIC = "scheduler_scheduling_algorithm_duration_seconds"
Document = dict[str, Any]


def cases() -> dict[str, Document]:
    """What the pods of each case say beside their requests."""
    kind = {"matchLabels": {"app": "measured"}}
    in_zones = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1", "z2"]}]}
    even = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": kind}
    return {
        "basic": {},
        "node affinity": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [in_zones]}}}},
        "pod affinity": {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": kind}]}}},
        "pod anti-affinity": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": kind}]}}},
        "topology spread": {"topologySpreadConstraints": [even]},
    }


def run(options: Options) -> Report:
    nodes, pods = options.pick(5000, 500), options.pick(1000, 100)
    rows = {case: [_ours(spec, nodes, pods)] for case, spec in cases().items()}
    with temporary(options) as folder, run_api_server(folder) as engine:
        # Our scheduler knows whose pods are those of machines.
        install_on(engine, judged=False)
        measured = asyncio.run(_measure(engine, folder, nodes, pods))
    with temporary(options) as folder, run_embedded(folder) as engine:
        embedded = asyncio.run(_measure_embedded(engine, folder, nodes, pods))
    shown: list[Row] = []
    for case, (ours,) in rows.items():
        at_least = 5 if case in ("basic", "node affinity") else 1
        theirs = measured[case]["decision"]
        shown.append(Row(f"{case}: a decision", "ms", ours, theirs, LESS, f"≥ {at_least}x", theirs >= at_least * ours))
    for case, found in measured.items():
        shown.append(
            Row(f"{case}: pods placed", "/s", found["ours"], found["theirs"], MORE, "≥ 1x", found["ours"] >= found["theirs"])
        )
    for case, ours in embedded.items():
        theirs = measured[case]["theirs"]
        shown.append(Row(f"{case}: on the embedded engine", "/s", ours, theirs, MORE, "≥ 2x", ours >= 2 * theirs))
    notes = ["the API server is the real one for both, its etcd without fsync", f"{nodes} nodes, {pods} pods of each case"]
    return Report(NAME, "kube-scheduler and ours", shown, notes, ("herder", "kube-scheduler"))


def node(number: int) -> Document:
    name = f"node-{number:05}"
    offered = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"capacity": offered, "allocatable": offered}
    return {"metadata": {"name": name, "labels": {HOST: name, ZONE: f"z{number % 3}"}}, "status": status}


def pod(case: str, number: int, spec: Document, scheduler: str) -> Document:
    name = f"{case.replace(' ', '-')}-{number}"
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    whole = {"containers": [container], "schedulerName": scheduler, "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name, "namespace": "default", "labels": {"app": "measured"}}, "spec": whole}


def _ours(spec: Document, nodes: int, pods: int) -> float:
    """Milliseconds on average, as the other side counts."""
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.put_node(Offer.of(msgspec.convert(node(number), Node)))
    times: list[float] = []
    for number in range(pods):
        read = msgspec.convert(pod("case", number, spec, OUR_NAME), Pod)
        began = time.perf_counter()
        needs = needs_of(read)
        chosen = decide(needs, snapshot, RULES)
        snapshot.put_pod(needs, chosen.node)
        times.append(time.perf_counter() - began)
    return statistics.fmean(times) * 1000


async def _measure(engine: Engine, folder: Path, nodes: int, pods: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    async with Client(connect(engine.kubeconfig, None, "bench"), "bench") as client:
        await _all(client.create(NODES, node(number)) for number in range(nodes))
        await _all(client.patch(NODES, Key("", f"node-{number:05}"), {"spec": {"taints": []}}) for number in range(nodes))
        for case, spec in cases().items():
            found[case] = await _theirs(engine, folder, client, case, spec, pods)
            command = [sys.executable, "-m", "bench.placement_process", str(engine.kubeconfig)]
            await _all(client.create(PODS, pod(case, number, spec, OUR_NAME)) for number in range(pods))
            found[case]["ours"] = await _rate(client, Child(command, folder / "ours.log"), pods)
    return found


async def _measure_embedded(engine: Engine, folder: Path, nodes: int, pods: int) -> dict[str, float]:
    """Our scheduler on our engine, beside what kube-scheduler did on kube-apiserver. All that is written is on the disk."""
    found: dict[str, float] = {}
    command = [sys.executable, "-m", "bench.placement_process", str(engine.kubeconfig)]
    async with Client(connect(engine.kubeconfig, None, "bench"), "bench") as client:
        await _all(client.create(NODES, node(number)) for number in range(nodes))
        for case, spec in cases().items():
            await _all(client.create(PODS, pod(case, number, spec, OUR_NAME)) for number in range(pods))
            found[case] = await _rate(client, Child(command, folder / "ours.log"), pods)
    return found


async def _theirs(engine: Engine, folder: Path, client: Client, case: str, spec: Document, pods: int) -> dict[str, float]:
    """Its rate as it comes, which at so many nodes looks at a tenth of them; its decisions when it looks at all."""
    decisions: list[float] = []
    (port,) = free_ports(1)

    async def ask() -> None:
        decisions.append(await _decision(port))

    all_nodes = configuration(engine)
    as_it_comes = {name: value for name, value in all_nodes.items() if name != "percentageOfNodesToScore"}
    few = max(10, pods // 5)
    await _all(client.create(PODS, pod(case, number, spec, THEIR_NAME)) for number in range(few))
    await _rate(client, start_scheduler(engine, folder, all_nodes, port), few, ask)
    await _all(client.create(PODS, pod(case, number, spec, THEIR_NAME)) for number in range(pods))
    return {"theirs": await _rate(client, start_scheduler(engine, folder, as_it_comes), pods), "decision": decisions[0]}


async def _decision(port: int) -> float:
    """Milliseconds on average, from its own metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"https://127.0.0.1:{port}/metrics", ssl=False) as answer:
        text = await answer.text()
    total, count = (float(re.findall(rf"^{METRIC}_{part} (\S+)$", text, re.M)[0]) for part in ("sum", "count"))
    return total / count * 1000


async def _rate(client: Client, child: Child, pods: int, at_end: Callable[[], Awaitable[None]] | None = None) -> float:
    """Pods per second from the first to the last, as a watch sees them; then all are taken away."""
    seen: list[float] = []

    def placed(change: Change[Pod]) -> None:
        if change.new is not None and change.new.node and (change.old is None or not change.old.node):
            seen.append(time.perf_counter())

    cache = Cache(client, PODS)
    cache.subscribe(placed)
    watching = asyncio.create_task(cache.run())
    try:
        while len(seen) < pods:
            child.check()
            await asyncio.sleep(0.1)
        if at_end is not None:
            await at_end()
    finally:
        watching.cancel()
        await asyncio.to_thread(child.stop)
    await _all(client.delete(PODS, Key("default", one.name), grace_period_seconds=0) for one in (await client.list(PODS)).items)
    return (pods - 1) / (seen[-1] - seen[0])


async def _all(calls: Iterable[Any]) -> None:
    slots = asyncio.Semaphore(32)

    async def one(call: Any) -> None:
        async with slots:
            await call

    await asyncio.gather(*(one(call) for call in calls))
