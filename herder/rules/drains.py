"""What emptying a node would do, before anybody does it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.instance import EvictionStrategy
from herder.rules.evictions import strategy_of, why_not_movable
from herder.rules.migration.where import asked_about
from herder.rules.placement import Offer, Snapshot, needs_of
from herder.rules.targets import explain_target

Document = dict[str, Any]
EFFECT = "NoSchedule"


class Leaving(msgspec.Struct, frozen=True):
    """One guest of the node, as it is now."""

    instance: VirtualMachineInstance
    document: Document


class DrainRow(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    # Where it would go; empty where it would stay, and then why.
    target: str
    why: str = ""


def plan_drain(node: Node, guests: list[Leaving], snapshot: Snapshot, key: str, default: EvictionStrategy) -> list[DrainRow]:
    """One after the other: each takes room from those that come after it. The snapshot is changed."""
    offer = Offer.of(node)
    snapshot.put_node(msgspec.structs.replace(offer, taints=(*offer.taints, (key, "", EFFECT))))
    return [_row(one, snapshot, default) for one in sorted(guests, key=lambda one: (one.instance.namespace, one.instance.name))]


def _row(leaving: Leaving, snapshot: Snapshot, default: EvictionStrategy) -> DrainRow:
    instance = leaving.instance
    names = (instance.namespace, instance.name)
    if strategy_of(instance, default) == "External":
        return DrainRow(*names, "", "its eviction strategy is External: it is left to who handles it")
    if why := why_not_movable(instance):
        return DrainRow(*names, "", f"it cannot be moved: {why}")
    asked = asked_about(instance, leaving.document)
    found = explain_target(asked, snapshot)
    if not found.node:
        return DrainRow(*names, "", found.impossible.message if found.impossible is not None else found.summary)
    snapshot.put_pod(msgspec.structs.replace(needs_of(asked.pod), name=f"{asked.pod.name}-moved"), found.node)
    return DrainRow(*names, found.node)


def with_taint(node: Node, key: str) -> list[Document] | None:
    """The taints that the node should have; None where it has it already."""
    if any(taint.key == key for taint in node.spec.taints):
        return None
    return [*_written(node), {"key": key, "effect": EFFECT}]


def without_taint(node: Node, key: str) -> list[Document] | None:
    kept = [taint for taint in _written(node) if taint["key"] != key]
    return kept if len(kept) != len(node.spec.taints) else None


def _written(node: Node) -> list[Document]:
    """As they are, with the time that some have."""
    return [{name: value for name, value in msgspec.to_builtins(taint).items() if value} for taint in node.spec.taints]
