"""What emptying a node would do, before anybody does it; and how each guest stands while it is done."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from herder.api import reasons
from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.kinds.instance import EvictionStrategy
from herder.rules.evictions import strategy_of, why_not_movable
from herder.rules.migration.phases import phase_of, target_of
from herder.rules.migration.where import asked_about
from herder.rules.placement import Offer, Snapshot, needs_of
from herder.rules.plans import find
from herder.rules.targets import added_by, explain_target

Document = dict[str, Any]
EFFECT = "NoSchedule"
# Of the condition `Evacuating`: no node there is can take it. Whatever else it says is tried again.
NEVER = (reasons.NO_MATCHING_NODE, reasons.MISSING_CPU_FEATURES, reasons.CONFLICTING_NODE_SELECTOR)
EXTERNAL = "its eviction strategy is External: it is left to who handles it"
NOT_MADE_YET = "its migration is about to be made"
DELETED = "it is being deleted, and ends here"


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


class DrainPlan(msgspec.Struct, frozen=True):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    node: str
    guests: tuple[DrainRow, ...]


def plan_drain(node: Node, guests: list[Leaving], snapshot: Snapshot, key: str, default: EvictionStrategy) -> list[DrainRow]:
    """One after the other: each takes room from those that come after it. The snapshot is changed."""
    offer = Offer.of(node)
    snapshot.put_node(msgspec.structs.replace(offer, taints=(*offer.taints, (key, "", EFFECT))))
    return [_row(one, snapshot, default) for one in sorted(guests, key=lambda one: (one.instance.namespace, one.instance.name))]


def _row(leaving: Leaving, snapshot: Snapshot, default: EvictionStrategy) -> DrainRow:
    instance, moving = leaving.instance, leaving.migration
    names = (instance.namespace, instance.name)
    if instance.being_deleted:
        return DrainRow(*names, "", DELETED)
    if moving is not None and target_of(moving):
        # Its pod has its place there already.
        return DrainRow(*names, target_of(moving), f"it is on its way: migration {moving.name} is {phase_of(moving)}")
    if moving is None and strategy_of(instance, default) == "External":
        return DrainRow(*names, "", EXTERNAL)
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


class Standing(msgspec.Struct, frozen=True):
    """How far one guest is that should leave. `left`: it is not there any more; `stays`: it cannot leave as things are."""

    state: Literal["left", "waits", "stays"]
    why: str


def standing_of(
    instance: VirtualMachineInstance | None, node: str, default: EvictionStrategy, no_node: str = "", coming: str = ""
) -> Standing:
    """Of a guest that no migration is moving off the node. `no_node`: why none can ever take it, as far as somebody has looked;
    `coming`: the migration that brings it here."""
    status = instance.status if instance is not None else None
    if instance is None or status is None or status.phase in ("Succeeded", "Failed"):
        return Standing("left", "has ended")
    if coming:
        return Standing("waits", f"it comes here by migration {coming}, and leaves again once it is here")
    if status.node_name and status.node_name != node:
        return Standing("left", f"moved to {status.node_name}")
    if instance.being_deleted:
        return Standing("waits", DELETED)
    if status.phase != "Running":
        why = f": {status.message}" if status.message else ""
        return Standing("waits", f"its guest is {status.phase}{why}; it is moved once it runs")
    return _settled(instance, default) or Standing("stays" if no_node else "waits", no_node or NOT_MADE_YET)


def _settled(instance: VirtualMachineInstance, default: EvictionStrategy) -> Standing | None:
    """What the instance itself says of why it does not leave."""
    conditions = instance.status.conditions if instance.status is not None else None
    if strategy_of(instance, default) == "External":
        return Standing("stays", EXTERNAL)
    if find(conditions, reasons.LIVE_MIGRATABLE) is None:
        return Standing("waits", "whether it can be moved is not known yet")
    if why := why_not_movable(instance):
        return Standing("stays", f"it cannot be moved: {why}")
    told = find(conditions, reasons.EVACUATING)
    if told is None or told.status != "False":
        return None
    return Standing("stays" if told.reason in NEVER else "waits", told.message or told.reason or "")


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
