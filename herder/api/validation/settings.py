"""KubeVirt, the cluster's settings, beyond its schema."""

from __future__ import annotations

from herder.api.kinds.kubevirt import NAME, NAMESPACE
from herder.api.names import label_key
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, part, quantity_at, text

MIGRATIONS = "spec.configuration.migrations"
# What QEMU takes at most.
MOST_DOWNTIME_MS = 2_000_000
ONLY_ONE = (
    f"the settings of the cluster are the KubeVirt object {NAME} in namespace {NAMESPACE}, and no other is used:"
    f" change that one, with kubectl edit kubevirt {NAME} -n {NAMESPACE}"
)


def validate_settings(settings: Json, old: Json | None = None) -> list[Problem]:
    return [*place_problems(settings), *configuration_problems(settings)]


def place_problems(settings: Json) -> list[Problem]:
    """Of an object that nobody reads. One that was stored before this was a rule can still be changed and deleted."""
    metadata = part(settings, "metadata")
    wanted = {"namespace": NAMESPACE, "name": NAME}
    written = {name: text(metadata, name) for name in wanted}
    return [invalid(f"metadata.{name}", written[name], ONLY_ONE) for name in wanted if written[name] != wanted[name]]


def configuration_problems(settings: Json) -> list[Problem]:
    """Of the settings themselves. Each names the field that cannot be used."""
    migrations = part(settings, "spec", "configuration", "migrations")
    problems = refinable_problems(migrations, MIGRATIONS)
    key = migrations.get("nodeDrainTaintKey")
    if key is not None:
        problems += [invalid(f"{MIGRATIONS}.nodeDrainTaintKey", key, complaint) for complaint in label_key(str(key))]
    return problems


def refinable_problems(settings: Json, path: str) -> list[Problem]:
    """Of what both the cluster and a policy may set."""
    problems: list[Problem] = []
    bandwidth = quantity_at(settings, "bandwidthPerMigration", path, problems)
    if bandwidth is not None and 0 < bandwidth.milli_value() < 1000:
        said = "is less than one byte per second: m stands for thousandths; write M or Mi for millions, or 0 for no limit"
        problems.append(invalid(f"{path}.bandwidthPerMigration", settings["bandwidthPerMigration"], said))
    downtime = settings.get("maxDowntimeMs")
    if isinstance(downtime, int) and not 1 <= downtime <= MOST_DOWNTIME_MS:
        # The one setting in which 0 means nothing: elsewhere it stands for no limit.
        why = "" if downtime else ": no guest moves without standing still; leave it out for 300"
        problems.append(invalid(f"{path}.maxDowntimeMs", downtime, f"must be from 1 to {MOST_DOWNTIME_MS} (milliseconds){why}"))
    return problems
