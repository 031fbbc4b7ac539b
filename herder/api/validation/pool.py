"""VirtualMachinePool, beyond its schema."""

from __future__ import annotations

from herder.api.int_or_percent import validate_at_most_hundred_percent
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, indexed, part, text
from herder.api.selectors import validate_label_selector, validate_labels
from herder.api.validation.durations import duration_problems
from herder.api.validation.machine import machine_problems
from herder.api.validation.made import metadata_problems

# `<pool>-<number>` is a machine's name and must fit into a label's value of 63 characters; 6 digits are enough for any pool.
LONGEST_NAME = 56


def validate_pool(pool: Json, old: Json | None = None) -> list[Problem]:
    spec = part(pool, "spec")
    problems = _name_problems(pool) if old is None else []
    if "maxUnavailable" in spec:
        problems += validate_at_most_hundred_percent(spec["maxUnavailable"], "spec.maxUnavailable")
    problems += duration_problems(part(spec, "autohealing"), "minFailingDuration", "spec.autohealing")
    for strategy in ("updateStrategy", "scaleInStrategy"):
        policy = part(spec, strategy, "proactive", "selectionPolicy")
        problems += _ordered_policy_problems(policy, f"spec.{strategy}.proactive.selectionPolicy")
    problems += metadata_problems(part(spec, "template", "metadata"), "spec.template.metadata")
    return problems + machine_problems(part(spec, "template", "spec"), "spec.template.spec")


def _name_problems(pool: Json) -> list[Problem]:
    name = text(part(pool, "metadata"), "name")
    if len(name) <= LONGEST_NAME:
        return []
    return [invalid("metadata.name", name, f"must be at most {LONGEST_NAME} characters: machines are called {name}-<number>")]


def _ordered_policy_problems(policy: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    for place, entry in indexed(policy, "orderedPolicies"):
        problems += validate_label_selector(part(entry, "labelSelector"), f"{path}.{place}.labelSelector")
        problems += validate_labels(part(entry, "nodeSelector"), f"{path}.{place}.nodeSelector")
    return problems
