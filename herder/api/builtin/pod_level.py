"""Resources of a pod as a whole: what is not said for the pod follows from its containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herder.api.builtin.semantics import Document, items, section
from herder.api.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]


def default_pod_resources(spec: Document) -> None:
    """Requests of the pod, where it has limits: the sum of its containers' requests, else the limit itself."""
    resources = spec.get("resources")
    if not resources:
        return
    limits: dict[str, Any] = dict(resources.get("limits") or {})
    requests: dict[str, Any] = dict(resources.get("requests") or {})
    for name, amount in aggregated(spec, "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, str(amount))
    if limits:
        for name, amount in aggregated(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(amount))
        for name, limit in limits.items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                requests.setdefault(name, limit)
        resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def aggregated(spec: Document, part: str) -> Amounts:
    """`requests` or `limits` of all containers together: init containers run one after the other, sidecars beside all others."""
    total: Amounts = {}
    for container in items(spec, "containers"):
        _add(total, _amounts(container, part))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in items(spec, "initContainers"):
        amounts = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            _add(amounts, sidecars)
        _keep_larger(peak, amounts)
    _keep_larger(total, peak)
    return total


def _amounts(container: Document, part: str) -> Amounts:
    found: Mapping[str, Any] = section(section(container, "resources"), part)
    amounts: Amounts = {}
    for name, value in found.items():
        try:
            amounts[name] = parse_quantity(value)
        except ValueError:
            continue  # validation says so
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _keep_larger(largest: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name not in largest or amount > largest[name]:
            largest[name] = amount
