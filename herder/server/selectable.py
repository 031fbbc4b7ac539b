"""Which fields a field selector may name, for each kind, and how they are read out of an object's bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from herder.server.jsonpath import compile_path

Extract = Callable[[bytes], dict[str, str]]

META_FIELDS = ("metadata.name", "metadata.namespace")


class Selectable:
    """`names` beyond metadata.name and metadata.namespace, which every kind has."""

    def __init__(self, names: Sequence[str], extract: Extract) -> None:
        self.names = frozenset(names)
        self.extract = extract

    def supports(self, field: str) -> bool:
        return field in META_FIELDS or field in self.names


NOTHING = Selectable((), lambda _: {})


def from_paths(paths: Sequence[str]) -> Selectable:
    """For CRDs: the `selectableFields` of a version, as JSON paths."""
    readers = {path.removeprefix("."): compile_path(path) for path in paths}

    def extract(raw: bytes) -> dict[str, str]:
        document = msgspec.json.decode(raw)
        return {name: _text(read(document)) for name, read in readers.items()}

    return Selectable(tuple(readers), extract)


def _text(found: Sequence[Any]) -> str:
    if not found or found[0] is None:
        return ""
    value = found[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _structured(names: Sequence[str], shape: type[Any], read: Callable[[Any], Sequence[Any]]) -> Selectable:
    """Read with a typed view, which skips everything else in C: pods are looked at on every watch event."""
    decode = msgspec.json.Decoder(shape).decode

    def extract(raw: bytes) -> dict[str, str]:
        return {name: _text((value,)) for name, value in zip(names, read(decode(raw)), strict=True)}

    return Selectable(names, extract)


class _PodSpec(msgspec.Struct, gc=False):
    nodeName: str = ""
    restartPolicy: str = ""
    schedulerName: str = ""
    serviceAccountName: str = ""
    hostNetwork: bool = False


class _PodStatus(msgspec.Struct, gc=False):
    phase: str = ""
    podIP: str = ""
    nominatedNodeName: str = ""


class _Pod(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


def _pod(pod: _Pod) -> Sequence[Any]:
    spec, status = pod.spec, pod.status
    return (
        *(spec.nodeName, spec.restartPolicy, spec.schedulerName, spec.serviceAccountName, spec.hostNetwork),
        *(status.phase, status.podIP, status.nominatedNodeName),
    )


_POD_NAMES = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
    *("status.phase", "status.podIP", "status.nominatedNodeName"),
)

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_NAMES = (*(f"involvedObject.{name}" for name in _INVOLVED), "reason", "reportingComponent", "source", "type")
_NEW_EVENT_NAMES = (*(f"regarding.{name}" for name in _INVOLVED), "reason", "reportingController", "type")


def _event(raw: bytes) -> dict[str, str]:
    """By the names of both groups: it is one stored event that both select from."""
    event = msgspec.json.decode(raw)
    about, reporter = event.get("involvedObject") or {}, event.get("reportingComponent") or ""
    found = {f"{group}.{name}": about.get(name, "") for group in ("involvedObject", "regarding") for name in _INVOLVED}
    source = (event.get("source") or {}).get("component") or reporter
    told = {"reason": event.get("reason", ""), "type": event.get("type", ""), "source": source}
    return {**found, **told, "reportingComponent": reporter, "reportingController": reporter}


BUILTIN: dict[str, Selectable] = {
    "pods": _structured(_POD_NAMES, _Pod, _pod),
    "nodes": from_paths([".spec.unschedulable"]),
    "namespaces": from_paths([".status.phase"]),
    "secrets": from_paths([".type"]),
    "replicasets.apps": from_paths([".status.replicas"]),
    "events": Selectable(_EVENT_NAMES, _event),
    "events.events.k8s.io": Selectable(_NEW_EVENT_NAMES, _event),
}
