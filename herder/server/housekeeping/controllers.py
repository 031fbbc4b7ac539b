"""How many pods the controllers of some pods want in all: the whole of which a budget's percentage is a share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herder.server.engine import Engine
from herder.server.served import Served
from herder.server.store import Record
from herder.server.store.records import Owner, key_of


class ControllersUnclear(Exception):
    """What the controllers want cannot be found out; the text says why."""


def expected_scale(engine: Engine, pods: Iterable[Record]) -> int:
    """Pods without a controller count as nothing."""
    seen: set[str] = set()
    scales: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        if owner is None or owner.uid in seen:
            continue
        seen.add(owner.uid)
        found = _find(engine, owner, pod.namespace)
        if found is None:
            raise ControllersUnclear(f'found no controllers for pod "{pod.name}"')
        served, record = _of_deployment(engine, *found)
        scales[record.uid] = _replicas(served, record)
    return sum(scales.values())


def controller_of(record: Record) -> Owner | None:
    return next((owner for owner in record.owners if owner.controller), None)


def _find(engine: Engine, owner: Owner, namespace: str) -> tuple[Served, Record] | None:
    group = owner.apiVersion.rpartition("/")[0]
    served = engine.registry.by_kind(group, owner.kind)
    if served is None:
        raise ControllersUnclear(f'no matches for kind "{owner.kind}" in version "{owner.apiVersion}"')
    if served.resource.scale is None:
        raise ControllersUnclear(f"{served.resource.qualified} does not implement the scale subresource")
    record = engine.store.get(served.table, key_of(namespace if served.resource.namespaced else "", owner.name))
    return (served, record) if record is not None and record.uid == owner.uid else None


def _of_deployment(engine: Engine, served: Served, record: Record) -> tuple[Served, Record]:
    """A ReplicaSet of a Deployment is one of several during a rollout: the Deployment says how many there are to be."""
    owner = controller_of(record) if served.table == "replicasets.apps" else None
    if owner is None or owner.kind != "Deployment":
        return served, record
    return _find(engine, owner, record.namespace) or (served, record)


def _replicas(served: Served, record: Record) -> int:
    assert served.resource.scale is not None
    path = served.resource.scale.spec_replicas
    node: Any = record.document()
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, int) or isinstance(node, bool):
        raise ControllersUnclear(f'the spec replicas field ".{path}" does not exist')
    return node
