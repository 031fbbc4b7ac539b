"""What reservations cost those that they are not for, and how long it takes to find the one that is.

Two clusters side by side, turn by turn: the same nodes and the same pods, in one of them also reservations of which none is for any
of these pods. A decision is all that the scheduler does for a pod before it writes: look for a reservation, ask all rules, assume.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import msgspec

from bench.placement import cases, node, pod
from bench.report import LESS, Report, Row
from bench.sides import Options
from herder.api.core import Node, Pod
from herder.api.kinds import ReservationView
from herder.rules.placement import RULES, decide, needs_of
from herder.rules.placement.gather import Everything, snapshot_of
from herder.rules.placement.snapshot import Snapshot
from herder.rules.reservations import Allocation, Candidate, Ledger, held_key, take_reservation

NAME = "reservations"
NOW = 1_800_000_000.0
Document = dict[str, Any]


class Side:
    def __init__(self, nodes: int, reservations: list[ReservationView]) -> None:
        self.ledger = Ledger()
        documents = [msgspec.convert(node(number), Node) for number in range(nodes)]
        self.snapshot: Snapshot = snapshot_of(Everything(nodes=documents, pods=(), reservations=reservations), self.ledger)
        self.times: list[float] = []

    def place(self, asked: Pod) -> bool:
        """Whether it took a reservation."""
        began = time.perf_counter()
        needs = needs_of(asked)
        take = take_reservation(needs, map(Candidate, self.ledger.open_for(asked, NOW)), self.snapshot, RULES)
        chosen = take.node if take is not None else decide(needs, self.snapshot, RULES).node
        self.snapshot.put_pod(needs, chosen)
        if take is not None:
            self.ledger.put_pod(asked, needs, chosen, Allocation(take.reservation.name, take.reservation.uid))
            self.snapshot.remove_pod(held_key(take.reservation.name))
        self.times.append(time.perf_counter() - began)
        return take is not None


def run(options: Options) -> Report:
    nodes, pods, count = options.pick(5000, 500), options.pick(1000, 200), options.pick(10_000, 1000)
    shown: list[Row] = []
    for case, spec in cases().items():
        without, beside = Side(nodes, []), Side(nodes, [reservation(number, nodes, "other") for number in range(count)])
        for number in range(pods):
            asked = msgspec.convert(pod(case, number, spec, "herder-scheduler"), Pod)
            sides = (without, beside) if number % 2 else (beside, without)
            assert [side.place(asked) for side in sides] == [False, False]
        ours, theirs = (statistics.median(side.times) * 1000 for side in (beside, without))
        shown.append(
            Row(f"{case}: a decision beside {count} reservations", "ms", ours, theirs, LESS, "≤ 5 % more", ours <= 1.05 * theirs)
        )
    shown.append(_taken(nodes, pods, count))
    notes = [f"{nodes} nodes, {pods} pods of each case; both sides are ours, turn by turn in one process", "medians"]
    return Report(NAME, "reservations that are not for a pod", shown, notes, ("with", "without"))


def _taken(nodes: int, pods: int, count: int) -> Row:
    """For whom there are many: the oldest that fits is taken."""
    side = Side(nodes, [reservation(number, nodes, "measured") for number in range(count)])
    for number in range(pods):
        taken = side.place(msgspec.convert(owned(pod("basic", number, {}, "herder-scheduler")), Pod))
        assert taken
    return Row(f"a pod that {count} reservations are for", "ms", statistics.median(side.times) * 1000)


def reservation(number: int, nodes: int, workload: str) -> ReservationView:
    container = {"name": "c", "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}}}
    template = {"metadata": {"namespace": "default", "labels": {"app": workload}}, "spec": {"containers": [container]}}
    owner = {"kind": "ReplicaSet", "name": workload, "uid": f"uid-{workload}", "namespace": "default"}
    document: Document = {
        "metadata": {"name": f"{workload}-{number:05}", "uid": f"{number}", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"template": template, "owners": [{"controller": owner}], "ttl": "0s"},
        "status": {"phase": "Available", "nodeName": f"node-{number % nodes:05}"},
    }
    return msgspec.convert(document, ReservationView)


def owned(document: Document) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "measured", "uid": "uid-measured", "controller": True}
    return {**document, "metadata": {**document["metadata"], "ownerReferences": [owner]}}
