"""All that the plan for one migration is made from."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.guest import MigrationReport, report_of
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.migration import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import AppliedPolicy, PolicySettings
from herder.rules.plans import Document


class Prepared(msgspec.Struct, frozen=True):
    """What would be decided if its turn came now."""

    policy: AppliedPolicy
    settings: PolicySettings
    # Why no node will ever do as things are: reason and sentence; empty where one may.
    impossible: tuple[str, str] = ("", "")


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds until a target that does not come about is given up."""

    unschedulable: float = 300.0
    pending: float = 900.0


class MigrationSnapshot(msgspec.Struct, frozen=True):
    migration: VirtualMachineInstanceMigration
    instance: VirtualMachineInstance | None
    instance_document: Document
    # All pods of the instance.
    pods: tuple[Pod, ...]
    # Those that its pods are bound to, as far as they exist.
    nodes: dict[str, Node]
    # Of an older unfinished migration of the same instance.
    rival: str = ""
    prepared: Prepared | None = None
    timeouts: Timeouts = Timeouts()
    # Nodes that should rather not be chosen, because many come there already.
    crowded: tuple[str, ...] = ()
    # Node by node, why its target pod has no place yet.
    no_place: str = ""

    @property
    def source(self) -> Pod | None:
        """Where the guest comes from: once chosen, it stays the same."""
        state = self.migration.status.migration_state if self.migration.status else None
        name = state.source_pod if state else None
        return next((pod for pod in self.pods if pod.name == name), None) if name else None

    @property
    def target(self) -> Pod | None:
        uid = self.migration.uid
        return next((pod for pod in self.pods if pod.labels.get(labels.MIGRATION_UID) == uid), None)


def said_by(pod: Pod | None, migration: str) -> MigrationReport | None:
    """What the pod's agent says about this very migration."""
    report = report_of(pod) if pod is not None else None
    found = report.migration if report is not None else None
    return found if found is not None and found.migration == migration else None
