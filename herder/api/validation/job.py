"""PodMigrationJob, beyond its schema."""

from __future__ import annotations

from herder.api.integers import parse_int64
from herder.api.names import dns_label, dns_subdomain
from herder.api.problems import Problem, forbidden, invalid, required, shown
from herder.api.reading import Json, part, text
from herder.api.validation.durations import duration_problems
from herder.api.validation.reservation import reservation_problems

PRIORITY_ANNOTATION = "herder.dev/migration-priority"
# Ends the job; and asks for the replacement to be ready before the pod goes.
ABORT_ANNOTATION, SURGE_ANNOTATION = "herder.dev/abort", "herder.dev/surge"
_RESERVATION = ("scheduling.koordinator.sh/v1alpha1", "Reservation")


def validate_job(job: Json, old: Json | None = None) -> list[Problem]:
    spec = part(job, "spec")
    problems = duration_problems(spec, "ttl", "spec") + _pod_problems(part(spec, "podRef"))
    options = part(spec, "reservationOptions")
    if "reservationRef" in options:
        problems += _reservation_ref_problems(part(options, "reservationRef"), "spec.reservationOptions.reservationRef")
    problems += reservation_problems(part(options, "template", "spec"), "spec.reservationOptions.template.spec")
    problems += _preemption_problems(options.get("preemptionOptions"))
    annotations = part(job, "metadata", "annotations")
    return problems + _priority_problems(annotations) + _flag_problems(annotations)


def _pod_problems(reference: Json) -> list[Problem]:
    namespace, name = text(reference, "namespace"), text(reference, "name")
    problems = [invalid("spec.podRef.namespace", namespace, complaint) for complaint in dns_label(namespace)] if namespace else []
    return problems + ([invalid("spec.podRef.name", name, complaint) for complaint in dns_subdomain(name)] if name else [])


def _reservation_ref_problems(reference: Json, path: str) -> list[Problem]:
    if not reference.get("name"):
        return [required(f"{path}.name", "must name a Reservation; leave reservationRef out to have one made")]
    problems: list[Problem] = []
    for field, expected in zip(("apiVersion", "kind"), _RESERVATION, strict=True):
        if reference.get(field) not in (None, "", expected):
            problems.append(invalid(f"{path}.{field}", reference[field], f'must be "{expected}", or be left out'))
    return problems


def _preemption_problems(options: object) -> list[Problem]:
    """The seed keeps the object for later: who writes something into it wants what nobody would do."""
    path = "spec.reservationOptions.preemptionOptions"
    return (
        [forbidden(path, f"must be left out or empty, not {shown(options)}: no pod is moved away for another one")]
        if options
        else []
    )


def _priority_problems(annotations: Json) -> list[Problem]:
    value = annotations.get(PRIORITY_ANNOTATION)
    number = parse_int64(value) if isinstance(value, str) else None
    if value is None or (number is not None and -(2**31) <= number < 2**31):
        return []
    return [invalid(f"metadata.annotations[{PRIORITY_ANNOTATION}]", value, "must be a whole number of 32 bits")]


def _flag_problems(annotations: Json) -> list[Problem]:
    """A misspelled wish would be none, and nobody would hear of it."""
    return [
        invalid(f"metadata.annotations[{name}]", annotations[name], 'must be "true" or "false", or be left out')
        for name in (ABORT_ANNOTATION, SURGE_ANNOTATION)
        if annotations.get(name) not in (None, "true", "false")
    ]
