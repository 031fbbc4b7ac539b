"""The table of HorizontalPodAutoscalers: what is used, of what is meant to be used."""

from __future__ import annotations

from typing import Any

from herder.server.tables.ages import age
from herder.server.tables.columns import AGE, NAME, Printer, created, name_of, part, text
from herder.server.tables.selectors import NONE

UNKNOWN = "<unknown>"
# More metrics than these are only counted.
MOST_SHOWN = 2


def print_autoscaler(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    target, smallest = part(spec, "scaleTargetRef"), spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if smallest is None else str(smallest),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(created(obj), now),
    ]


def _metrics(specs: list[Any], current: list[Any]) -> str:
    if not specs:
        return NONE
    shown = [_metric(one, current[index] if index < len(current) else {}) for index, one in enumerate(specs[:MOST_SHOWN])]
    more = len(specs) - len(shown)
    return ", ".join(shown) + (f" + {more} more..." if more else "")


def _metric(spec: dict[str, Any], current: dict[str, Any]) -> str:
    source, target = part(spec, "resource"), part(spec, "resource", "target")
    measured = part(current, "resource", "current")
    if target.get("averageValue") is not None:
        return f"{source.get('name', '')}: {measured.get('averageValue', UNKNOWN)}/{target['averageValue']}"
    used, wanted = (_percent(one.get("averageUtilization")) for one in (measured, target))
    return f"{source.get('name', '')}: {used or UNKNOWN}/{wanted or '<auto>'}"


def _percent(value: int | None) -> str:
    return "" if value is None else f"{value}%"


AUTOSCALERS = Printer(
    (
        NAME,
        text("Reference", "What is scaled."),
        text("Targets", "What its pods use, of what they are meant to use."),
        text("MinPods", "Never fewer than these."),
        text("MaxPods", "Never more than these."),
        text("Replicas", "How many there are."),
        AGE,
    ),
    print_autoscaler,
)
