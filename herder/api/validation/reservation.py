"""Reservation, beyond its schema; also the parts of one that stand in a PodMigrationJob."""

from __future__ import annotations

import msgspec

from herder.api.core.pods import PodTemplateSpec
from herder.api.problems import Problem, invalid, required
from herder.api.reading import Json, indexed, part, quantity_at
from herder.api.selectors import validate_label_selector
from herder.api.validation.durations import duration_problems
from herder.api.validation.placement import placement_problems


def validate_reservation(reservation: Json, old: Json | None = None) -> list[Problem]:
    return reservation_problems(part(reservation, "spec"), "spec")


def reservation_problems(spec: Json, path: str) -> list[Problem]:
    problems = duration_problems(spec, "ttl", path)
    for place, owner in indexed(spec, "owners"):
        problems += _owner_problems(owner, f"{path}.{place}")
    template = part(spec, "template", "spec")
    problems += _container_problems(template, f"{path}.template.spec") + placement_problems(template, f"{path}.template.spec")
    return problems or _pod_problems(part(spec, "template"), f"{path}.template")


def _pod_problems(template: Json, path: str) -> list[Problem]:
    """What the schema keeps as written must still be a pod's: the room is judged as a pod's is."""
    try:
        msgspec.convert(template, PodTemplateSpec)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        return [invalid(path + where.strip("`").removeprefix("$"), None, f"must be as in a pod: {said}")]
    return []


def _owner_problems(owner: Json, path: str) -> list[Problem]:
    problems = validate_label_selector(part(owner, "labelSelector"), f"{path}.labelSelector")
    named = part(owner, "object")
    if "object" in owner and not (named.get("name") or named.get("uid")):
        problems.append(required(f"{path}.object.name", "must name the pod, or give its uid: otherwise every pod would fit"))
    return problems


def _container_problems(template: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    for kind in ("containers", "initContainers"):
        for place, container in indexed(template, kind):
            for name in ("requests", "limits"):
                amounts = part(container, "resources", name)
                for resource in amounts:
                    quantity_at(amounts, resource, f"{path}.{place}.resources.{name}", problems)
    return problems
