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
from herder.rules.plans import Delete, Document, Event, condition, find, moment, text_of

PRIORITY = "system-maintenance"
# After a failure, and twice as long after each more.
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0
# Digits of a number of attempts that is believed.
MOST_DIGITS = 6


class EvacuationSnapshot(msgspec.Struct, frozen=True):
    instance: VirtualMachineInstance
    # The one on which it runs.
    node: Node | None
    # All of the instance.
    migrations: tuple[VirtualMachineInstanceMigration, ...]
    cluster: ClusterMigrationSettings
    # Whether its budget is there: name and uid.
    budget: tuple[str, str] | None = None
    # Why no node there is can ever take it: reason and sentence. Looked for only where it `has_to_leave`.
    no_node: tuple[str, str] | None = None


class EvacuationPlan(msgspec.Struct, frozen=True):
    create_budget: Document | None = None
    delete_budget: Delete | None = None
    create_migration: Document | None = None
    delete_migrations: tuple[Delete, ...] = ()
    # The wish to leave was fulfilled.
    clear_wish: bool = False
    # The condition `Evacuating` of the instance; None where it should have none.
    condition: Document | None = None
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def drained(node: Node | None, key: str) -> bool:
    return node is not None and any(taint.key == key for taint in node.spec.taints)


def budget_name(instance: str) -> str:
    return f"herder-disruption-budget-{instance[:220].rstrip('-.')}"


def has_to_leave(snapshot: EvacuationSnapshot) -> bool:
    """Its node is emptied, or an eviction asked for it; and nothing is under way yet."""
    return _should_leave(snapshot) and not (_is_external(snapshot) or _is_leaving(snapshot))


def plan_evacuation(snapshot: EvacuationSnapshot, now: float) -> EvacuationPlan:
    plan = _budget(snapshot) if _is_running(snapshot.instance) else _no_budget(snapshot)
    plan = msgspec.structs.replace(plan, delete_migrations=_superseded(snapshot.migrations))
    if has_to_leave(snapshot):
        return _leave(snapshot, plan, now)
    if _should_leave(snapshot):
        return plan
    wish, where = snapshot.instance.annotations.get(labels.EVACUATE, ""), _where(snapshot.instance)
    stale = bool(wish) and bool(where) and wish != where
    ends = (*plan.delete_migrations, *_not_begun(snapshot))
    return msgspec.structs.replace(plan, delete_migrations=ends, clear_wish=stale)


def _is_running(instance: VirtualMachineInstance) -> bool:
    return instance.status is not None and instance.status.phase == "Running" and not instance.being_deleted


def _where(instance: VirtualMachineInstance) -> str:
    return (instance.status.node_name if instance.status else None) or ""


def _should_leave(snapshot: EvacuationSnapshot) -> bool:
    instance, where = snapshot.instance, _where(snapshot.instance)
    asked = instance.annotations.get(labels.EVACUATE, "") == where
    return _is_running(instance) and bool(where) and (asked or drained(snapshot.node, snapshot.cluster.node_drain_taint_key))


def _is_leaving(snapshot: EvacuationSnapshot) -> bool:
    return any(not finished(one) for one in snapshot.migrations) or _has_left(snapshot)


def _leave(snapshot: EvacuationSnapshot, plan: EvacuationPlan, now: float) -> EvacuationPlan:
    """What an eviction does is one thing; a node that is emptied on purpose is left by everyone who can be moved."""
    where = _where(snapshot.instance)
    if stays := _why_it_stays(snapshot):
        return _shown(snapshot, plan, stays[0], f"it should leave node {where}, and {stays[1]}")
    last, failures = _failed(snapshot.migrations)
    if last is not None and (wait := _wait(last, failures, now)) > 0:
        status = last.status
        said = (status.message or status.reason or "") if status is not None else ""
        why = f"migration {last.name} off node {where} failed: {said}; it is tried again at {text_of(moment(now + wait))}"
        reason = (status.reason if status is not None else None) or reasons.EVACUATION_IMPOSSIBLE
        shown = condition(reasons.EVACUATING, False, reason, why)
        return msgspec.structs.replace(plan, condition=shown, next_look=wait)
    made = _migration(snapshot, where, failures + 1)
    told = Event("Normal", reasons.EVACUATING, f"it leaves node {where}: migration {made['metadata']['name']}")
    return msgspec.structs.replace(plan, create_migration=made, events=(told,))


def _why_it_stays(snapshot: EvacuationSnapshot) -> tuple[str, str] | None:
    """Reason and sentence: no migration is made that could only fail."""
    instance = snapshot.instance
    if why := why_not_movable(instance):
        movable = find(instance.status.conditions if instance.status else None, reasons.LIVE_MIGRATABLE)
        reason = (movable.reason if movable is not None else None) or reasons.EVACUATION_IMPOSSIBLE
        return reason, f"cannot be moved: {why}"
    return (snapshot.no_node[0], f"no node can take it: {snapshot.no_node[1]}") if snapshot.no_node is not None else None


def _shown(snapshot: EvacuationSnapshot, plan: EvacuationPlan, reason: str, message: str) -> EvacuationPlan:
    """On the instance, and as an event when it is new."""
    known = find(snapshot.instance.status.conditions if snapshot.instance.status else None, reasons.EVACUATING)
    told = known is not None and (known.reason, known.message) == (reason, message)
    events = () if told else (Event("Warning", reasons.EVACUATION_IMPOSSIBLE, message),)
    return msgspec.structs.replace(plan, condition=condition(reasons.EVACUATING, False, reason, message), events=events)


def _is_external(snapshot: EvacuationSnapshot) -> bool:
    return strategy_of(snapshot.instance, snapshot.cluster.eviction_strategy) == "External"


def _has_left(snapshot: EvacuationSnapshot) -> bool:
    """Its last migration has succeeded, and the instance does not show it yet. One that never began, made while another was under
    way, is shown by no instance, and says nothing about where the guest is."""
    over = [
        one for one in snapshot.migrations if one.status is not None and one.status.end_timestamp and one.status.migration_state
    ]
    last = max(over, key=lambda one: (one.status and one.status.end_timestamp, one.name), default=None)
    if last is None or phase_of(last) != "Succeeded":
        return False
    shown = snapshot.instance.status.migration_state if snapshot.instance.status else None
    return shown is None or shown.migration_uid != last.uid or not shown.completed


def _ended(migrations: tuple[VirtualMachineInstanceMigration, ...]) -> list[tuple[float, VirtualMachineInstanceMigration]]:
    """Those that were made to empty a node and are over, the last one last."""
    over = [
        (one.status.end_timestamp.timestamp(), one)
        for one in migrations
        if labels.EVACUATION in one.labels and one.status is not None and one.status.end_timestamp is not None
    ]
    return sorted(over, key=lambda ended: (ended[0], ended[1].name))


def _failed(migrations: tuple[VirtualMachineInstanceMigration, ...]) -> tuple[VirtualMachineInstanceMigration | None, int]:
    """The last one, if it failed, and how many failed in a row. It says itself which try it was: those before it are not kept."""
    row: list[VirtualMachineInstanceMigration] = []
    for _, one in reversed(_ended(migrations)):
        if phase_of(one) != "Failed":
            break
        row.append(one)
    return (row[0], max(len(row), _attempt(row[0]))) if row else (None, 0)


def _attempt(migration: VirtualMachineInstanceMigration) -> int:
    """Whoever may make migrations could write anything here. It decides on nothing but how long we wait, and that is bounded."""
    written = migration.annotations.get(labels.EVACUATION_ATTEMPT, "")
    return int(written) if written.isascii() and written.isdigit() and len(written) <= MOST_DIGITS else 1


def _wait(last: VirtualMachineInstanceMigration, failures: int, now: float) -> float:
    """Seconds until it is tried again: after each failure in a row twice as long."""
    end = last.status.end_timestamp if last.status is not None else None
    return (end.timestamp() if end is not None else now) + doubled(FIRST_BACKOFF, LONGEST_BACKOFF, failures - 1) - now


def _superseded(migrations: tuple[VirtualMachineInstanceMigration, ...]) -> tuple[Delete, ...]:
    """Of those that failed people want to see the last: a node that is emptied for hours would leave one for each try."""
    failed = [one for _, one in _ended(migrations) if phase_of(one) == "Failed"]
    return tuple(Delete(one.name, one.uid) for one in failed[:-1] if not one.being_deleted)


def _not_begun(snapshot: EvacuationSnapshot) -> tuple[Delete, ...]:
    """What has begun goes on: it can do no harm, and half a move is worth nothing."""
    ours = [one for one in snapshot.migrations if labels.EVACUATION in one.labels and phase_of(one) == "Pending"]
    return tuple(Delete(one.name, one.uid) for one in ours if not one.being_deleted)


def _migration(snapshot: EvacuationSnapshot, where: str, attempt: int) -> Document:
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
            "annotations": {labels.EVACUATION: where, labels.EVACUATION_ATTEMPT: str(attempt)},
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
