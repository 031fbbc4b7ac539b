"""One pod, all nodes: the one to take, or why none will do, in the words of kube-scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from herder.api.core import Node, Pod
from herder.api.node_selector import RequiredNodeAffinity
from herder.rules.matching.resources import CPU, Amounts, amounts, lacking, pod_requests
from herder.rules.matching.taints import untolerated
from herder.rules.placement.disks import CONFLICT, Disks

UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
INSUFFICIENT = "Insufficient {}"
NO_DISKS = Disks()
_CORDON_TAINT = "node.kubernetes.io/unschedulable"


class Candidate(msgspec.Struct, frozen=True):
    node: Node
    used: Amounts


class Placement(msgspec.Struct, frozen=True):
    node: str = ""
    message: str = ""


def place(pod: Pod, spec: Mapping[str, Any], candidates: Iterable[Candidate], disks: Disks = NO_DISKS) -> Placement:
    """`spec` is the pod's own, as it is stored."""
    if disks.waits:
        return Placement(message=f"0/{sum(1 for _ in candidates)} nodes are available: {disks.waits}.")
    wanted = pod_requests(pod)
    affinity = RequiredNodeAffinity(spec)
    refusals: Counter[str] = Counter()
    best: tuple[float, str] | None = None
    total = 0
    for candidate in candidates:
        total += 1
        room = amounts(candidate.node.status.allocatable)
        reasons = _refusals(pod, affinity, wanted, candidate, room, disks)
        refusals.update(reasons)
        if not reasons:
            # Less used first; by name where they are alike, so that the same question has the same answer.
            score = (_usage(wanted, candidate.used, room), candidate.node.name)
            best = score if best is None or score < best else best
    return Placement(best[1]) if best is not None else Placement(message=_message(total, refusals))


def _refusals(
    pod: Pod, affinity: RequiredNodeAffinity, wanted: Amounts, candidate: Candidate, room: Amounts, disks: Disks
) -> list[str]:
    """The first rule that says no; what there is too little of, all of it."""
    node = candidate.node
    if node.spec.unschedulable and not _tolerates_cordon(pod):
        return [UNSCHEDULABLE]
    if untolerated(node.spec.taints, pod.spec.tolerations) is not None:
        return [UNTOLERATED]
    if not affinity.matches(node.labels, node.name):
        return [AFFINITY]
    if not disks.allow(node.labels, node.name):
        return [CONFLICT]
    lack = lacking(wanted, candidate.used, room)
    return ["Too many pods" if name == "pods" else INSUFFICIENT.format(name) for name in lack]


def _tolerates_cordon(pod: Pod) -> bool:
    return any(one.operator == "Exists" and one.key in ("", None, _CORDON_TAINT) for one in pod.spec.tolerations)


def _usage(wanted: Amounts, used: Amounts, room: Amounts) -> float:
    """How full the node would be, the fuller of processors and memory."""
    shares = [(used.get(name, 0) + wanted.get(name, 0)) / room[name] for name in (CPU, "memory") if room.get(name)]
    return max(shares, default=1.0)


def _message(total: int, refusals: Counter[str]) -> str:
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(refusals.items()))
    return f"0/{total} nodes are available: {listed}." if listed else f"0/{total} nodes are available."
