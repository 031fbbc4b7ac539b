"""Whether a guest cannot start because of the level that the cluster requires, and what the best level is that it could have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.integers import parse_int64
from herder.api.node_selector import RequiredNodeAffinity
from herder.rules.matching.taints import untolerated
from herder.rules.migratability.profile import schedulable
from herder.rules.migratability.starting import REQUIRED, at_least

SETTING = "requireHostModelMigratabilityLevel"
MOST_NODES = 3
Document = dict[str, Any]


def demanded_level(pod: Pod) -> int:
    """The level that the settings asked for when the pod was made; 0 where none."""
    return parse_int64(pod.annotations.get(labels.REQUIRED_LEVEL, "")) or 0


def waits(pod: Pod) -> bool:
    """Whether it was found that no node will have it."""
    return not pod.spec.node_name and any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions)


def not_reached(pod: Pod, nodes: Iterable[Node]) -> str:
    """The sentence, where none of the nodes that the pod may go to otherwise has the level. Empty where that is not the reason."""
    level = demanded_level(pod)
    if not level or not waits(pod):
        return ""
    found = _levels(pod, level, nodes)
    best = max((one for one, _ in found), default=None)
    if best is None or best >= level:
        return ""
    names = sorted(name for one, name in found if one == best)
    where = ", ".join(names[:MOST_NODES]) + (f" and {len(names) - MOST_NODES} more" if len(names) > MOST_NODES else "")
    return (
        f"the cluster requires host-model migratability level {level} of the node ({SETTING}), and no node that the guest may start"
        f" on has it: the highest is {best}, on {where}"
    )


def out_of_reach(required: int, best: int | None) -> str:
    """What is wrong with a required level that no node of the cluster has. Nothing where there are no nodes yet."""
    if best is None or required <= best:
        return ""
    return (
        f"{SETTING} asks for level {required}, and no node has it: the highest is {best}. No host-model machine will start;"
        " `herder explain migratability` shows why"
    )


def _levels(pod: Pod, level: int, nodes: Iterable[Node]) -> list[tuple[int, str]]:
    allowed = RequiredNodeAffinity(_without_level(pod, level))
    found: list[tuple[int, str]] = []
    for node in nodes:
        has = parse_int64(node.labels.get(labels.MIGRATABILITY_LEVEL, ""))
        if has is None or not schedulable(node) or untolerated(node.spec.taints, pod.spec.tolerations):
            continue
        if allowed.matches(node.labels, node.name):
            found.append((has, node.name))
    return found


def _without_level(pod: Pod, level: int) -> Document:
    """What the pod asks of its node beside the level."""
    spec: Document = {"nodeSelector": pod.spec.node_selector}
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return spec
    terms = [_stripped(term, at_least(level)) for term in msgspec.to_builtins(affinity.required)["nodeSelectorTerms"]]
    # A term of nothing but the level was ours alone: without it everything is allowed.
    return spec if None in terms else {**spec, "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _stripped(term: Document, test: Document) -> Document | None:
    expressions: list[Document] = term.get("matchExpressions") or []
    left = [one for one in expressions if {**one, "values": list(one.get("values") or ())} != test]
    if not left and expressions and not term.get("matchFields"):
        return None
    return {**term, "matchExpressions": left}
