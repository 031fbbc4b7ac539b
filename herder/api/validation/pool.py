"""VirtualMachinePool, beyond its schema."""

from __future__ import annotations

from herder.api import defaults
from herder.api.int_or_percent import validate_at_most_hundred_percent
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, part
from herder.api.validation.durations import duration_problems
from herder.api.validation.machine import machine_problems, scale_in_problems
from herder.api.validation.made import metadata_problems
from herder.api.validation.ordered_policies import ordered_policy_problems
from herder.api.validation.pool_names import number_problems, pool_name_problems


def validate_pool(pool: Json, old: Json | None = None) -> list[Problem]:
    spec = part(pool, "spec")
    problems = pool_name_problems(pool) if old is None else []
    problems += _amount_problems(spec, "maxUnavailable", "spec")
    problems += _amount_problems(part(spec, "updateStrategy", "proactive"), "limit", "spec.updateStrategy.proactive")
    problems += _deadline_problems(spec)
    problems += duration_problems(part(spec, "autohealing"), "minFailingDuration", "spec.autohealing")
    for strategy in ("updateStrategy", "scaleInStrategy"):
        policy = part(spec, strategy, "proactive", "selectionPolicy")
        problems += ordered_policy_problems(policy, f"spec.{strategy}.proactive.selectionPolicy")
    return problems + _template_problems(spec)


def _deadline_problems(spec: Json) -> list[Problem]:
    """As Deployments have it: who takes longer to count as available than it has time for would halt every rollout."""
    deadline = spec.get("progressDeadlineSeconds", defaults.PROGRESS_DEADLINE_SECONDS)
    ready = spec.get("minReadySeconds", defaults.MIN_READY_SECONDS)
    if not isinstance(deadline, int) or not isinstance(ready, int) or deadline > ready:
        return []
    return [invalid("spec.progressDeadlineSeconds", deadline, f"must be greater than minReadySeconds, which is {ready}")]


def _amount_problems(settings: Json, name: str, path: str) -> list[Problem]:
    return validate_at_most_hundred_percent(settings[name], f"{path}.{name}") if name in settings else []


def _template_problems(spec: Json) -> list[Problem]:
    """Judged as each machine will be: what a machine would be refused for is refused here, where somebody reads it."""
    metadata, machine = part(spec, "template", "metadata"), part(spec, "template", "spec")
    problems = metadata_problems(metadata, "spec.template.metadata")
    problems += scale_in_problems(metadata, "spec.template.metadata")
    return problems + (machine_problems(machine, "spec.template.spec") or number_problems(spec))
