"""Finished migrations are kept for people to look at, and not for ever."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.defaults import FINISHED_MIGRATIONS_KEPT
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.rules.migration.phases import finished


def too_many(of_instance: Iterable[VirtualMachineInstanceMigration]) -> list[VirtualMachineInstanceMigration]:
    """The oldest finished ones of one instance, beyond those that are kept."""
    over = sorted((one for one in of_instance if finished(one) and not one.being_deleted), key=_ended)
    return over[: max(0, len(over) - FINISHED_MIGRATIONS_KEPT)]


def _ended(migration: VirtualMachineInstanceMigration) -> tuple[float, str]:
    end = migration.status.end_timestamp if migration.status else None
    return (end.timestamp() if end is not None else 0.0, migration.name)
