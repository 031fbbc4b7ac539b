"""What emptying a node would do, before anybody does it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.kinds.instance import EvictionStrategy
from herder.rules.evictions import strategy_of, why_not_movable
from herder.rules.migration.phases import phase_of, target_of
from herder.rules.migration.where import asked_about
from herder.rules.placement import Offer, Snapshot, needs_of
from herder.rules.targets import added_by, explain_target

Document = dict[str, Any]
EFFECT = "NoSchedule"


class Leaving(msgspec.Struct, frozen=True):
    """One guest of the node, as it is now."""

    instance: VirtualMachineInstance
    document: Document
    # One that is not over: it is not made a second time.
    migration: VirtualMachineInstanceMigration | None = None


class DrainRow(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    # Where it would go; empty where it would not.
    target: str
    # Why it does not, or why it goes there.
    why: str = ""


def plan_drain(node: Node, guests: list[Leaving], snapshot: Snapshot, key: str, default: EvictionStrategy) -> list[DrainRow]:
    """One after the other: each takes room from those that come after it. The snapshot is changed."""
    offer = Offer.of(node)
    snapshot.put_node(msgspec.structs.replace(offer, taints=(*offer.taints, (key, "", EFFECT))))
    return [_row(one, snapshot, default) for one in sorted(guests, key=lambda one: (one.instance.namespace, one.instance.name))]


def _row(leaving: Leaving, snapshot: Snapshot, default: EvictionStrategy) -> DrainRow:
    instance, moving = leaving.instance, leaving.migration
    names = (instance.namespace, instance.name)
    if instance.being_deleted:
        return DrainRow(*names, "", "it is being deleted, and ends here")
    if moving is not None and target_of(moving):
        # Its pod has its place there already.
        return DrainRow(*names, target_of(moving), f"it is on its way: migration {moving.name} is {phase_of(moving)}")
    if moving is None and strategy_of(instance, default) == "External":
        return DrainRow(*names, "", "its eviction strategy is External: it is left to who handles it")
    if why := why_not_movable(instance):
        return DrainRow(*names, "", f"it cannot be moved: {why}")
    return _placed(leaving, snapshot)


def _placed(leaving: Leaving, snapshot: Snapshot) -> DrainRow:
    instance, moving = leaving.instance, leaving.migration
    asked = asked_about(instance, leaving.document, added_by(moving.spec) if moving is not None else None)
    found = explain_target(asked, snapshot)
    if not found.node:
        why = found.impossible.message if found.impossible is not None else found.summary
        return DrainRow(instance.namespace, instance.name, "", why)
    snapshot.put_pod(msgspec.structs.replace(needs_of(asked.pod), name=f"{asked.pod.name}-moved"), found.node)
    why = f"as migration {moving.name} asks" if moving is not None else ""
    return DrainRow(instance.namespace, instance.name, found.node, why)


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
