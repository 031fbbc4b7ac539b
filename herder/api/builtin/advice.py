"""What Kubernetes accepts and warns of, for pods and what makes them: accepted, but probably not meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from herder.api import names
from herder.api.builtin.semantics import Document, items, section
from herder.api.quantity import parse_quantity

_TEMPLATE: Final = ("spec.template.", "spec", "template")
# Where the pod is in an object of each kind.
_PODS: Final = {
    ("", "Pod"): ("",),
    **{("apps", kind): _TEMPLATE for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec.jobTemplate.spec.template.", "spec", "jobTemplate", "spec", "template"),
}
_BYTES: Final = ("memory", "ephemeral-storage")
_NO_POD: Final = "without one it matches no pod"


def advice_on_create(group: str, kind: str, obj: Document) -> list[str]:
    where = _PODS.get((group, kind))
    return [*_about_name(kind, obj), *_about_pod(where, obj)] if where else []


def advice_on_update(group: str, kind: str, new: Document, old: Document) -> list[str]:
    """Pods change often, and by programs: nobody would read it. Others only when what they want has changed."""
    where = _PODS.get((group, kind)) if kind != "Pod" else None
    changed = section(new, "metadata").get("generation") != section(old, "metadata").get("generation")
    return list(_about_pod(where, new)) if where and changed else []


def _about_name(kind: str, obj: Document) -> list[str]:
    if kind == "StatefulSet" or not names.dns_label(section(obj, "metadata").get("name") or ""):
        return []
    used = "the hostname of the pod" if kind == "Pod" else "the names and hostnames of its pods"
    return [f"metadata.name: it is part of {used}, where only a DNS label does what is expected: no dots, at most 63 characters"]


def _about_pod(where: tuple[str, ...], obj: Document) -> Iterator[str]:
    prefix, *path = where
    for step in path:
        obj = section(obj, step)
    spec, at = section(obj, "spec"), f"{prefix}spec"
    yield from _doubled(items(spec, "hostAliases"), f"{at}.hostAliases", "ip")
    yield from _doubled(items(spec, "imagePullSecrets"), f"{at}.imagePullSecrets", "name")
    for number, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield f"{at}.imagePullSecrets[{number}].name: is empty and names no secret"
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield f"{at}.terminationGracePeriodSeconds: is less than 0 and counts as 1"
    yield from _about_selectors(spec, at)
    containers = list(_containers(spec, at))
    for container, here in containers:
        yield from _about_container(container, here)
    yield from _about_ports(containers)


def _containers(spec: Document, at: str) -> Iterator[tuple[Document, str]]:
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(items(spec, kind)):
            yield container, f"{at}.{kind}[{number}]"


def _doubled(entries: Iterable[Document], at: str, key: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        value = entry.get(key) or ""
        if value in seen:
            yield f'{at}[{number}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _about_selectors(spec: Document, at: str) -> Iterator[str]:
    for number, one in enumerate(items(spec, "topologySpreadConstraints")):
        if one.get("labelSelector") is None:
            yield f"{at}.topologySpreadConstraints[{number}].labelSelector: {_NO_POD}"
    for kind in ("podAffinity", "podAntiAffinity"):
        rules, here = section(section(spec, "affinity"), kind), f"{at}.affinity.{kind}"
        for number, term in enumerate(items(rules, "requiredDuringSchedulingIgnoredDuringExecution")):
            if term.get("labelSelector") is None:
                yield f"{here}.requiredDuringSchedulingIgnoredDuringExecution[{number}].labelSelector: {_NO_POD}"
        for number, term in enumerate(items(rules, "preferredDuringSchedulingIgnoredDuringExecution")):
            if section(term, "podAffinityTerm").get("labelSelector") is None:
                path = f"preferredDuringSchedulingIgnoredDuringExecution[{number}].podAffinityTerm"
                yield f"{here}.{path}.labelSelector: {_NO_POD}"


def _about_container(container: Document, at: str) -> Iterator[str]:
    for name in _BYTES:
        for kind in ("limits", "requests"):
            value = section(section(container, "resources"), kind).get(name)
            if value is not None and parse_quantity(value).nanos % 1_000_000_000:
                yield f'{at}.resources.{kind}[{name}]: "{value}" is not a whole number of bytes'
    seen: set[str] = set()
    for number, variable in enumerate(items(container, "env")):
        name = variable.get("name") or ""
        if name in seen and _hides(variable, f"$({name})"):
            yield f'{at}.env[{number}]: hides the previous definition of "{name}", which apply may drop'
        seen.add(name)


def _hides(variable: Document, reference: str) -> bool:
    """One that builds on what was before does not."""
    value = variable.get("value") or ""
    return variable.get("valueFrom") is not None or value == reference or reference not in value


def _about_ports(containers: list[tuple[Document, str]]) -> Iterator[str]:
    seen: dict[tuple[Any, ...], str] = {}
    called: dict[str, str] = {}
    for container, here in containers:
        for number, port in enumerate(items(container, "ports")):
            at = f"{here}.ports[{number}]"
            key = (port.get("containerPort"), port.get("protocol") or "TCP", port.get("hostIP") or "", port.get("hostPort") or 0)
            if key in seen:
                yield f"{at}: duplicate port definition with {seen[key]}"
            name = port.get("name")
            if name and name in called:
                yield f'{at}: duplicate port name "{name}" with {called[name]}, which is the one that is found by that name'
            seen.setdefault(key, at)
            if name:
                called.setdefault(name, at)
