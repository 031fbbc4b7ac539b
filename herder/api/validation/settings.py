"""KubeVirt, the cluster's settings, beyond its schema."""

from __future__ import annotations

from herder.api.names import label_key
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, part, quantity_at

MIGRATIONS = "spec.configuration.migrations"


def validate_settings(settings: Json, old: Json | None = None) -> list[Problem]:
    migrations = part(settings, "spec", "configuration", "migrations")
    problems: list[Problem] = []
    quantity_at(migrations, "bandwidthPerMigration", MIGRATIONS, problems)
    key = migrations.get("nodeDrainTaintKey")
    if key is not None:
        problems += [invalid(f"{MIGRATIONS}.nodeDrainTaintKey", key, complaint) for complaint in label_key(str(key))]
    return problems
