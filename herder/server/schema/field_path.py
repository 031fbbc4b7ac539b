"""The `fieldPath` of a rule: `.spec.replicas`, `['odd name'].x`, always below the place where the rule stands."""

from __future__ import annotations

import re

from herder.server.schema.node import Node

_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def normalized(path: str, node: Node) -> str | None:
    """As problems show it (`spec.replicas`, `labels[app]`); None where the path leads to no field of the schema."""
    at, shown = 0, ""
    place = node
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        name = step[1] if step[1] is not None else re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), step[2])
        if place.properties:
            shown = f"{shown}.{name}" if shown else name
            below = place.properties.get(name)
        else:
            shown = f"{shown}[{name}]"
            below = place.additional
        if below is None:
            return None
        place = below
    return shown
