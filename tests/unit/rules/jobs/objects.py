"""Pods, their controllers and what there is of them, for tests of the finder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api.core import DaemonSet, Deployment, Pod, ReplicaSet, StatefulSet
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.meta import Identified
from herder.rules.jobs.workload import Controller, GroupKind, NoScale, Scale

Json = dict[str, Any]
TEMPLATE: Json = {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}
_VIEWS: dict[str, tuple[str, type[Any], Json]] = {
    "Deployment": ("apps/v1", Deployment, {"replicas": 3}),
    "ReplicaSet": ("apps/v1", ReplicaSet, {"replicas": 3}),
    "StatefulSet": ("apps/v1", StatefulSet, {"replicas": 3}),
    "DaemonSet": ("apps/v1", DaemonSet, {}),
    "VirtualMachineInstance": ("kubevirt.io/v1", VirtualMachineInstance, TEMPLATE["template"]["spec"]),
    "VirtualMachine": ("kubevirt.io/v1", VirtualMachine, {"running": True, **TEMPLATE}),
    "VirtualMachinePool": (
        "kubevirt.io/v1",
        VirtualMachinePool,
        {"replicas": 3, "template": {"spec": {"running": True, **TEMPLATE}}},
    ),
}


def reference(kind: str, name: str, uid: str = "", api_version: str = "") -> Json:
    known = _VIEWS[kind][0] if kind in _VIEWS else "stranger.io/v1"
    return {"apiVersion": api_version or known, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def controller(kind: str, name: str, uid: str = "", api_version: str = "") -> Controller:
    said = reference(kind, name, uid, api_version)
    return Controller(said["apiVersion"], kind, name, said["uid"])


def metadata(name: str, owner: Json | None = None, **more: Any) -> Json:
    owned = {"ownerReferences": [owner]} if owner is not None else {}
    return {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 2, **owned, **more}


def thing(
    kind: str, name: str, owner: Json | None = None, *, spec: Json | None = None, status: Json | None = None, **meta: Any
) -> Any:
    """Its status is up to date unless said otherwise."""
    _, view, wanted = _VIEWS[kind]
    observed = {"observedGeneration": 2} if kind not in ("VirtualMachineInstance",) else {}
    document = {
        "metadata": metadata(name, owner, **meta),
        "spec": {**wanted, **(spec or {})},
        "status": {**observed, **(status or {})},
    }
    return msgspec.convert(document, view)


def pod(name: str, owner: Json | None = None, *, ready: bool = True, phase: str = "Running", **meta: Any) -> Pod:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    document = {"metadata": metadata(name, owner, **meta), "status": {"phase": phase, "conditions": conditions}}
    return msgspec.convert(document, Pod)


class Known:
    """What there is, for the rules."""

    def __init__(self, *things: Any, scales: dict[str, Scale | NoScale] | None = None) -> None:
        self._things = {(type(one).__name__, one.name): one for one in things}
        self._scales = scales or {}
        self.asked: list[str] = []

    def get(self, kind: GroupKind, namespace: str, name: str) -> Identified | None:
        assert namespace == "shop"
        return self._things.get((kind[1], name))

    def scale(self, controller: Controller, namespace: str) -> Scale | NoScale:
        self.asked.append(controller.name)
        return self._scales.get(controller.name, NoScale("Unknown", "not read yet"))

    def replica_sets(self, namespace: str, uid: str) -> Iterable[ReplicaSet]:
        return [one for one in self._things.values() if isinstance(one, ReplicaSet) and one.controller_uid == uid]
