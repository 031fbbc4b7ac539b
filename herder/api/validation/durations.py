"""Lengths of time, beyond their pattern: one that is too long for Kubernetes, or below zero."""

from __future__ import annotations

from herder.api.duration import parse_duration
from herder.api.problems import Problem, invalid
from herder.api.reading import Json

_FORM = 'must be a length of time such as "90s", "5m" or "1h30m"'


def duration_problems(document: Json, name: str, path: str) -> list[Problem]:
    value = document.get(name)
    if value is None:
        return []
    try:
        nanos = parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        nanos = None
    if nanos is None:
        return [invalid(f"{path}.{name}", value, _FORM)]
    return [invalid(f"{path}.{name}", value, f"{_FORM}, not below zero")] if nanos < 0 else []
