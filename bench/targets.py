"""Where a migration may go, and why not elsewhere, over 5,000 nodes: columns against one node after the other.

The snapshot is the one that a controller keeps by events; what it takes to make it from lists, as the command line does, is told
beside it. The other side asks the same rules about one node at a time, as kube-scheduler's filters do, in the same language.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.report import LESS, Report, Row
from bench.sides import Options
from herder.api.core import Node, Pod
from herder.api.labels import SCHEDULABLE
from herder.api.node_selector import RequiredNodeAffinity
from herder.rules.matching.resources import amounts, lacking, pod_requests, used_by
from herder.rules.matching.taints import untolerated
from herder.rules.placement import Snapshot
from herder.rules.placement.gather import Everything, snapshot_of
from herder.rules.targets import Added, Asked, constrained, explain_target, impossible, why_waiting

NAME = "targets"
SSD = {"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd"]}]}
Document = dict[str, Any]


def run(options: Options) -> Report:
    count, rounds = options.pick(5000, 500), options.pick(50, 5)
    nodes, pods = _nodes(count), _pods(count)
    start = time.process_time()
    snapshot = snapshot_of(Everything(nodes, pods))
    made = (time.process_time() - start) * 1e3
    limit = 20.0 if not options.quick else None
    rows: list[Row] = []
    for what, cpu in (("some fit", "2"), ("none fits", "64")):
        asked = Asked(_pod(cpu), Added(SSD), "node-00000")
        ours = _best(lambda asked=asked: explain_target(asked, snapshot), rounds)
        theirs = _best(lambda asked=asked: _one_by_one(asked, nodes, pods), max(rounds // 10, 2))
        met = None if limit is None else ours <= limit
        rows.append(Row(f"{what}: a row per node", "ms", ours, theirs, LESS, "≤ 20 ms", met))
    rows += _for_the_controller(snapshot, rounds)
    notes = [
        f"{count} nodes, {len(pods)} pods; the best of {rounds} rounds",
        f"a snapshot from lists takes {made:.0f} ms of CPU, once",
    ]
    return Report(NAME, "where one migration may go", rows, notes, ("columns", "node by node"))


def _for_the_controller(snapshot: Snapshot, rounds: int) -> list[Row]:
    asked = Asked(_pod("64"), Added(SSD), "node-00000")
    return [
        Row("why it waits, in one sentence", "ms", _best(lambda: why_waiting(asked, snapshot), rounds)),
        Row("whether it can ever be", "ms", _best(lambda: impossible(asked, snapshot), rounds)),
    ]


def _best(ask: Callable[[], object], rounds: int) -> float:
    """What it takes when nobody disturbs."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        ask()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def _one_by_one(asked: Asked, nodes: list[Node], pods: list[Pod]) -> dict[str, str]:
    """Labels, taints and room, and nothing else."""
    affinity = constrained(None, asked.added.term, not_on=asked.source)
    wanted = RequiredNodeAffinity({"nodeSelector": asked.pod.spec.node_selector, "affinity": affinity})
    requests = pod_requests(asked.pod)
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(pod.spec.node_name, []).append(pod)
    return {node.name: _why_not(node, on.get(node.name, []), wanted, requests, asked) for node in nodes}


def _why_not(node: Node, pods: list[Pod], wanted: RequiredNodeAffinity, requests: dict[str, int], asked: Asked) -> str:
    taint = untolerated(node.spec.taints, asked.pod.spec.tolerations)
    if taint is not None:
        return f"has taint {taint.key}"
    if not wanted.matches(node.labels, node.name):
        return "is excluded"
    missing = lacking(requests, used_by(pods), amounts(node.status.allocatable))
    return f"lacks {' and '.join(missing)}" if missing else ""


def _nodes(count: int) -> list[Node]:
    return [msgspec.convert(_node(number), Node) for number in range(count)]


def _node(number: int) -> Document:
    name = f"node-{number:05}"
    labels = {SCHEDULABLE: "true", "disktype": "ssd" if number % 3 else "hdd", "zone": f"z{number % 3}", "host": name}
    taints = [{"key": "maintenance", "effect": "NoSchedule"}] if number % 10 == 1 else []
    room = {"cpu": "16" if number % 2 else "1", "memory": "64Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": {"allocatable": room}}


def _pod(cpu: str, name: str = "guest", node: str = "") -> Pod:
    container = {"name": "compute", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}
    spec: Document = {"containers": [container], "nodeSelector": {SCHEDULABLE: "true"}, "nodeName": node}
    return msgspec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}, Pod)


def _pods(nodes: int) -> list[Pod]:
    """Two for each node."""
    return [_pod("100m", f"pod-{number}", f"node-{number % nodes:05}") for number in range(2 * nodes)]
