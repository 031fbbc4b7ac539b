"""The way of a migration, and which part of it counts against which limit."""

from __future__ import annotations

import datetime

from herder.api.kinds.migration import MigrationPhase, VirtualMachineInstanceMigration

# From the moment in which its turn came: it counts for the cluster and for the node that it leaves.
UNDER_WAY: tuple[MigrationPhase, ...] = ("Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")
# And for the node that it comes to.
COMING_IN: tuple[MigrationPhase, ...] = ("PreparingTarget", "TargetReady", "Running")
FINISHED: tuple[MigrationPhase, ...] = ("Succeeded", "Failed")
# A migration never goes back.
ORDER: tuple[MigrationPhase, ...] = ("Pending", *UNDER_WAY)


def phase_of(migration: VirtualMachineInstanceMigration) -> MigrationPhase:
    return (migration.status.phase if migration.status else None) or "Pending"


def finished(migration: VirtualMachineInstanceMigration) -> bool:
    return phase_of(migration) in FINISHED


def source_of(migration: VirtualMachineInstanceMigration) -> str:
    return (migration.status.source_node if migration.status else None) or ""


def target_of(migration: VirtualMachineInstanceMigration) -> str:
    return (migration.status.target_node if migration.status else None) or ""


def further(one: MigrationPhase, other: MigrationPhase) -> MigrationPhase:
    return one if ORDER.index(one) >= ORDER.index(other) else other


def reached(migration: VirtualMachineInstanceMigration, phase: MigrationPhase) -> datetime.datetime | None:
    known = (migration.status.phase_transition_timestamps if migration.status else None) or ()
    return next((one.phase_transition_timestamp for one in known if one.phase == phase), None)
