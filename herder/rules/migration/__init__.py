"""What becomes of one migration, and whose turn it is. Pure: objects in, plans out (docs/migration.md)."""

from herder.rules.migration.phases import COMING_IN, FINISHED, UNDER_WAY, phase_of
from herder.rules.migration.plan import MigrationPlan, plan_migration
from herder.rules.migration.snapshot import MigrationSnapshot
from herder.rules.migration.turns import Limits, Line

__all__ = [
    "COMING_IN",
    "FINISHED",
    "UNDER_WAY",
    "Limits",
    "Line",
    "MigrationPlan",
    "MigrationSnapshot",
    "phase_of",
    "plan_migration",
]
