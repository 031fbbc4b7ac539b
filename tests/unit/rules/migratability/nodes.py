"""Nodes with processors, as their labels say it, and the levels counted in the plainest way there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.core import Node

Labels = dict[str, str]


def cpu(
    model: str = "Haswell",
    required: Iterable[str] = (),
    *,
    also: Iterable[str] = (),
    models: Iterable[str] = (),
    vendor: str = "Intel",
) -> Labels:
    """A processor that has what its host model asks for, and some features and models more."""
    found = {labels.HOST_MODEL_CPU + model: "true", labels.CPU_MODEL_MIGRATION + model: "true"}
    found |= {labels.HOST_MODEL_REQUIRED_FEATURES + name: "true" for name in required}
    found |= {labels.CPU_FEATURE + name: "true" for name in (*required, *also)}
    found |= {prefix + name: "true" for name in models for prefix in (labels.CPU_MODEL_MIGRATION, labels.CPU_MODEL)}
    return found | ({labels.CPU_VENDOR + vendor: "true"} if vendor else {})


def node(name: str, written: Mapping[str, str], *, ready: str = "True", cordoned: bool = False) -> Node:
    conditions = [{"type": "Ready", "status": ready}]
    document = {
        "metadata": {"name": name, "labels": dict(written)},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": conditions},
    }
    return msgspec.convert(document, Node)


def plainly_counted(nodes: Iterable[Node]) -> dict[str, int]:
    """As the seed says it, pair by pair, with nothing but sets."""
    there = [one for one in nodes if _counts(one)]
    return {one.name: 100 * sum(_takes(other, one) for other in there if other is not one) // len(there) for one in there}


def _counts(node: Node) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
    return ready and not node.spec.unschedulable and node.labels.get(labels.SCHEDULABLE) in (None, "true")


def _takes(there: Node, here: Node) -> bool:
    model = min(_names(here, labels.HOST_MODEL_CPU), default="")
    if not model or model not in _names(there, labels.CPU_MODEL_MIGRATION):
        return False
    vendors = [min(found) for one in (here, there) if (found := _names(one, labels.CPU_VENDOR))]
    features = _names(here, labels.HOST_MODEL_REQUIRED_FEATURES) <= _names(there, labels.CPU_FEATURE)
    return features and (len(vendors) < 2 or vendors[0] == vendors[1])


def _names(node: Node, prefix: str) -> set[str]:
    return {key.removeprefix(prefix) for key, value in node.labels.items() if key.startswith(prefix) and value == "true"}
