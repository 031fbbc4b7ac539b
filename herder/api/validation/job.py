"""PodMigrationJob, beyond its schema."""

from __future__ import annotations

from herder.api.names import dns_label, dns_subdomain
from herder.api.problems import Problem, invalid, required
from herder.api.reading import Json, part, text
from herder.api.validation.durations import duration_problems
from herder.api.validation.reservation import reservation_problems

PRIORITY_ANNOTATION = "herder.dev/migration-priority"
_RESERVATION = ("scheduling.koordinator.sh/v1alpha1", "Reservation")


def validate_job(job: Json, old: Json | None = None) -> list[Problem]:
    spec = part(job, "spec")
    problems = duration_problems(spec, "ttl", "spec") + _pod_problems(part(spec, "podRef"))
    options = part(spec, "reservationOptions")
    if "reservationRef" in options:
        problems += _reservation_ref_problems(part(options, "reservationRef"), "spec.reservationOptions.reservationRef")
    problems += reservation_problems(part(options, "template", "spec"), "spec.reservationOptions.template.spec")
    return problems + _priority_problems(part(job, "metadata", "annotations"))


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


def _priority_problems(annotations: Json) -> list[Problem]:
    value = annotations.get(PRIORITY_ANNOTATION)
    try:
        fits = value is None or -(2**31) <= int(str(value)) < 2**31
    except ValueError:
        fits = False
    return [] if fits else [invalid(f"metadata.annotations[{PRIORITY_ANNOTATION}]", value, "must be a whole number of 32 bits")]
