"""Migrations and both their pods, for tests of rules."""

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.guest import GuestReport, GuestState, MigrationOrder, MigrationReport, Started
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import AppliedPolicy, PolicySettings
from herder.rules.migration import MigrationPlan, MigrationSnapshot, plan_migration
from herder.rules.migration.snapshot import Prepared
from herder.rules.plans import moment
from tests.unit.rules.machines import NOW, Json, instance, instance_view, later, node

UID = "feedface-0001"
SETTINGS = PolicySettings(completion_timeout_per_gib=150)
PREPARED = Prepared(AppliedPolicy(name="fast", why="it matches"), SETTINGS)
STARTED = Started(machine_type="q35", runtime="simulated", memory_bytes=1 << 26)


def migration(
    phase: str = "", *, deleted: bool = False, since: float = 0.0, name: str = "move", uid: str = UID, **spec: Any
) -> Json:
    metadata: Json = {"name": name, "namespace": "shop", "uid": uid, "generation": 1, "creationTimestamp": later(-10)}
    metadata["finalizers"] = [labels.MIGRATION_FINALIZER]
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    document: Json = {"metadata": metadata, "spec": {"vmiName": "web", **spec}}
    if not phase:
        return document
    status: Json = {
        "phase": phase,
        "sourceNode": "node-1",
        "targetPod": "virt-launcher-web-aaaaaaaa-feedface",
        "effectiveSettings": {"completionTimeoutPerGiB": 150},
        "startTimestamp": later(since),
        "phaseTransitionTimestamps": [{"phase": "Scheduling", "phaseTransitionTimestamp": later(since)}],
        "migrationState": {"sourcePod": "virt-launcher-web-aaaaaaaa", "sourceNode": "node-1"},
    }
    return {**document, "status": status}


def view(document: Json) -> VirtualMachineInstanceMigration:
    return msgspec.convert(document, VirtualMachineInstanceMigration)


def launcher(
    name: str,
    on: str,
    state: GuestState | None = None,
    *,
    said: dict[str, Any] | None = None,
    order: MigrationOrder | None = None,
    target: bool = False,
    phase: str = "Running",
    deleted: bool = False,
    started: float | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    written = dict(annotations or {})
    if order is not None:
        written[labels.MIGRATION] = msgspec.json.encode(order).decode()
    metadata: Json = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "annotations": written, "labels": {}}
    if target:
        metadata["labels"][labels.MIGRATION_UID] = UID
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    conditions: list[Json] = []
    if state is not None:
        moving = MigrationReport(migration=UID, **said) if said is not None else None
        at = None if started is None else moment(NOW + started)
        report = GuestReport(state=state, started=STARTED, migration=moving, started_at=at)
        text = msgspec.json.encode(report).decode()
        conditions.append({"type": labels.GUEST_CONDITION, "status": "True", "reason": state, "message": text})
    document = {"metadata": metadata, "spec": {"nodeName": on}, "status": {"phase": phase, "conditions": conditions}}
    return msgspec.convert(document, Pod)


def source(state: GuestState = "Running", **more: Any) -> Pod:
    return launcher("virt-launcher-web-aaaaaaaa", "node-1", state, **more)


def target(state: GuestState | None = "Incoming", *, on: str = "node-2", phase: str = "Pending", **more: Any) -> Pod:
    return launcher("virt-launcher-web-aaaaaaaa-feedface", on, state, target=True, phase=phase, **more)


def named(name: str, **more: Any) -> Node:
    return msgspec.structs.replace(node(**more), metadata=msgspec.structs.replace(node().metadata, name=name))


def ordered(*, cancelled: bool = False) -> MigrationOrder:
    return MigrationOrder(migration=UID, settings=SETTINGS, address="simulated://node-2", cancelled=cancelled)


def plan(
    document: Json,
    *pods: Pod,
    of: Json | None = None,
    nodes: tuple[str, ...] | dict[str, Node] = ("node-1", "node-2"),
    now: float = NOW,
    **more: Any,
) -> MigrationPlan:
    there = nodes if isinstance(nodes, dict) else {name: named(name) for name in nodes}
    whole = instance("Running", nodeName="node-1") if of is None else of
    found = None if of == {} else instance_view(whole)
    more = {"prepared": PREPARED, "nodes": there, **more}
    return plan_migration(MigrationSnapshot(view(document), found, whole, pods, **more), now)


def phase(plan: MigrationPlan) -> str:
    assert plan.status is not None
    return plan.status["phase"]


def why(plan: MigrationPlan) -> tuple[str, str]:
    assert plan.status is not None
    return plan.status.get("reason", ""), plan.status.get("message", "")
