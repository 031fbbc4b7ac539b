"""Where a migration of one instance would go now, or what would become of it: the value that `explain target` shows."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import reasons
from herder.api.kinds import VirtualMachineInstance
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.migration.where import asked_about
from herder.rules.placement import Snapshot
from herder.rules.plans import find
from herder.rules.targets import Added, Impossible, TargetRow, explain_target

Document = dict[str, Any]


class MigrationExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    # Where the guest is; empty where it runs nowhere yet.
    node_name: str
    # Why it cannot be migrated at all, as its condition says; None where it can.
    not_migratable: Impossible | None
    # The node that the scheduler would take; empty where there is none.
    target_node: str
    # "0/5 nodes: 2 lack cpu, ..."
    summary: str
    # Why a migration would fail at once; None where it would go, or wait.
    impossible: Impossible | None
    # How long a migration waits for a node at most.
    pending_timeout_seconds: int
    nodes: tuple[TargetRow, ...]
    # Nodes that are not among them.
    other_nodes: int = 0


def explain_migration(
    instance: VirtualMachineInstance,
    document: Document,
    added: Added,
    snapshot: Snapshot,
    cluster: ClusterMigrationSettings,
    *,
    detailed: bool = False,
) -> MigrationExplanation:
    """`document` is the instance as it is written; `detailed` is for those who may read nodes."""
    found = explain_target(asked_about(instance, document, added), snapshot, detailed=detailed)
    status = instance.status
    return MigrationExplanation(
        namespace=instance.namespace,
        name=instance.name,
        node_name=(status.node_name if status is not None else None) or "",
        not_migratable=not_migratable(instance),
        target_node=found.node,
        summary=found.summary,
        impossible=found.impossible,
        pending_timeout_seconds=cluster.unschedulable_pending_timeout,
        nodes=found.rows,
    )


def not_migratable(instance: VirtualMachineInstance) -> Impossible | None:
    """As its condition says."""
    condition = find(instance.status.conditions if instance.status is not None else None, reasons.LIVE_MIGRATABLE)
    if condition is None or condition.status != "False":
        return None
    return Impossible(condition.reason or "", condition.message or "")
