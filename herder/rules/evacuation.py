"""Moves guests off a node that is emptied: by its drain taint, or because an eviction asked for it. And keeps their pods from being
evicted by a budget of their own, for the case that nobody asks us."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons, registry
from herder.api.backoff import doubled
from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.evictions import strategy_of, why_not_movable
from herder.rules.migration.phases import finished, phase_of
from herder.rules.plans import Delete, Document, Event

PRIORITY = "system-maintenance"
# After a failure, and twice as long after each more.
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0


class EvacuationSnapshot(msgspec.Struct, frozen=True):
    instance: VirtualMachineInstance
    # The one on which it runs.
    node: Node | None
    # All of the instance.
    migrations: tuple[VirtualMachineInstanceMigration, ...]
    cluster: ClusterMigrationSettings
    # Whether its budget is there: name and uid.
    budget: tuple[str, str] | None = None


class EvacuationPlan(msgspec.Struct, frozen=True):
    create_budget: Document | None = None
    delete_budget: Delete | None = None
    create_migration: Document | None = None
    delete_migrations: tuple[Delete, ...] = ()
    # The wish to leave was fulfilled.
    clear_wish: bool = False
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def drained(node: Node | None, key: str) -> bool:
    return node is not None and any(taint.key == key for taint in node.spec.taints)


def budget_name(instance: str) -> str:
    return f"herder-disruption-budget-{instance[:220].rstrip('-.')}"


def plan_evacuation(snapshot: EvacuationSnapshot, now: float) -> EvacuationPlan:
    instance = snapshot.instance
    running = instance.status is not None and instance.status.phase == "Running" and not instance.being_deleted
    plan = _budget(snapshot) if running else _no_budget(snapshot)
    where = (instance.status.node_name if instance.status else None) or ""
    wish = instance.annotations.get(labels.EVACUATE, "")
    leaves = running and bool(where) and (wish == where or drained(snapshot.node, snapshot.cluster.node_drain_taint_key))
    if not leaves:
        stale = bool(wish) and bool(where) and wish != where
        return msgspec.structs.replace(plan, delete_migrations=_not_begun(snapshot), clear_wish=stale)
    return _leave(snapshot, plan, where, now)


def _leave(snapshot: EvacuationSnapshot, plan: EvacuationPlan, where: str, now: float) -> EvacuationPlan:
    instance = snapshot.instance
    # What an eviction does is one thing; a node that is emptied on purpose is left by everyone who can be moved.
    if _is_external(snapshot) or any(not finished(one) for one in snapshot.migrations) or _has_left(snapshot):
        return plan
    if why := why_not_movable(instance):
        told = Event("Warning", reasons.EVACUATION_IMPOSSIBLE, f"it should leave node {where}, and cannot be moved: {why}")
        return msgspec.structs.replace(plan, events=(told,))
    wait = _wait(snapshot.migrations, now)
    if wait > 0:
        return msgspec.structs.replace(plan, next_look=wait)
    made = _migration(snapshot, where)
    told = Event("Normal", reasons.EVACUATING, f"it leaves node {where}: migration {made['metadata']['name']}")
    return msgspec.structs.replace(plan, create_migration=made, events=(told,))


def _is_external(snapshot: EvacuationSnapshot) -> bool:
    return strategy_of(snapshot.instance, snapshot.cluster.eviction_strategy) == "External"


def _has_left(snapshot: EvacuationSnapshot) -> bool:
    """Its last migration has succeeded, and the instance does not show it yet."""
    over = [one for one in snapshot.migrations if one.status is not None and one.status.end_timestamp is not None]
    last = max(over, key=lambda one: (one.status and one.status.end_timestamp, one.name), default=None)
    if last is None or phase_of(last) != "Succeeded":
        return False
    shown = snapshot.instance.status.migration_state if snapshot.instance.status else None
    return shown is None or shown.migration_uid != last.uid or not shown.completed


def _wait(migrations: tuple[VirtualMachineInstanceMigration, ...], now: float) -> float:
    """Seconds until it is tried again: after each failure in a row twice as long."""
    ends = sorted(
        (one.status.end_timestamp.timestamp(), phase_of(one) == "Failed")
        for one in migrations
        if labels.EVACUATION in one.labels and one.status is not None and one.status.end_timestamp is not None
    )
    failures = 0
    for _, failed in reversed(ends):
        if not failed:
            break
        failures += 1
    if not failures:
        return 0.0
    return ends[-1][0] + doubled(FIRST_BACKOFF, LONGEST_BACKOFF, failures - 1) - now


def _not_begun(snapshot: EvacuationSnapshot) -> tuple[Delete, ...]:
    """What has begun goes on: it can do no harm, and half a move is worth nothing."""
    ours = [one for one in snapshot.migrations if labels.EVACUATION in one.labels and phase_of(one) == "Pending"]
    return tuple(Delete(one.name, one.uid) for one in ours if not one.being_deleted)


def _migration(snapshot: EvacuationSnapshot, where: str) -> Document:
    """The name follows from what is there: whoever makes it twice makes the same one."""
    instance = snapshot.instance
    base = f"evacuation-{instance.name[:200].rstrip('.')}-{instance.uid[:8]}-"
    numbers = [one.name.removeprefix(base) for one in snapshot.migrations if one.name.startswith(base)]
    number = 1 + max((int(one) for one in numbers if one.isdigit()), default=0)
    return {
        "metadata": {
            "name": f"{base}{number}",
            "namespace": instance.namespace,
            "labels": {labels.EVACUATION: "true"},
            "annotations": {labels.EVACUATION: where},
        },
        "spec": {"vmiName": instance.name, "priority": PRIORITY},
    }


def _budget(snapshot: EvacuationSnapshot) -> EvacuationPlan:
    """For guests that are moved and not ended. Also while our own answer to evictions cannot be asked for."""
    instance = snapshot.instance
    strategy = strategy_of(instance, snapshot.cluster.eviction_strategy)
    wanted = strategy in ("LiveMigrate", "External") or (strategy == "LiveMigrateIfPossible" and not why_not_movable(instance))
    if not wanted:
        return _no_budget(snapshot)
    if snapshot.budget is not None:
        return EvacuationPlan()
    return EvacuationPlan(create_budget=_budget_document(instance))


def _no_budget(snapshot: EvacuationSnapshot) -> EvacuationPlan:
    return EvacuationPlan(delete_budget=Delete(*snapshot.budget)) if snapshot.budget is not None else EvacuationPlan()


def _budget_document(instance: VirtualMachineInstance) -> Document:
    owner = {
        "apiVersion": registry.INSTANCE.api_version,
        "kind": registry.INSTANCE.kind,
        "name": instance.name,
        "uid": instance.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {"name": budget_name(instance.name), "namespace": instance.namespace, "ownerReferences": [owner]},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {labels.CREATED_BY: instance.uid}}},
    }
