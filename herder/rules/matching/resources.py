"""How much a pod asks for, and whether a node has it. Whole numbers: processors in thousandths, everything else in units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from herder.api.core import Pod
from herder.api.core.containers import Container
from herder.api.quantity import parse_quantity

CPU = "cpu"
PODS = "pods"
Amounts = dict[str, int]


def amounts(written: Mapping[str, str | int | float]) -> Amounts:
    """A ResourceList as numbers. An amount that cannot be read counts as nothing: the API server has let it in."""
    return {name: _amount(name, value) for name, value in written.items()}


def _amount(name: str, value: str | int | float) -> int:
    try:
        quantity = parse_quantity(value)
    except (ValueError, TypeError):
        return 0
    return quantity.milli_value() if name == CPU else quantity.value()


def pod_requests(pod: Pod) -> Amounts:
    """As kube-scheduler counts: containers that run together, or the most that runs before them, and what the pod takes beside."""
    spec = pod.spec
    sidecars: Amounts = {}
    before: Amounts = {}
    for container in spec.init_containers:
        own = _of(container)
        if container.restart_policy == "Always":
            _add(sidecars, own)
            _most(before, sidecars)
        else:
            _most(before, _sum((own, sidecars)))
    total = _sum((*(_of(container) for container in spec.containers or ()), sidecars))
    _most(total, before)
    if spec.resources is not None:
        # Said for the pod as a whole: that counts instead.
        total |= amounts(spec.resources.requests)
    _add(total, amounts(spec.overhead))
    total[PODS] = 1
    return total


def lacking(wanted: Amounts, used: Amounts, allocatable: Amounts) -> tuple[str, ...]:
    """What the node has too little of, by name."""
    return tuple(name for name, value in sorted(wanted.items()) if value and value > allocatable.get(name, 0) - used.get(name, 0))


def used_by(pods: Iterable[Pod]) -> Amounts:
    return _sum(pod_requests(pod) for pod in pods)


def _of(container: Container) -> Amounts:
    return amounts(container.resources.requests)


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _most(total: Amounts, other: Amounts) -> None:
    for name, value in other.items():
        total[name] = max(total.get(name, 0), value)
