"""Machines, instances, pods and nodes for tests of rules: as they are stored, and as views."""

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node, PersistentVolumeClaim, Pod
from herder.api.guest import GuestReport
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance
from herder.rules.plans import moment, text_of

NOW = 1_750_000_000.0
Json = dict[str, Any]


def later(seconds: float) -> str:
    return text_of(moment(NOW + seconds))


def machine(status: Json | None = None, *, annotations: Json | None = None, deleted: bool = False, **spec: Any) -> Json:
    metadata = {"name": "web", "namespace": "shop", "uid": "machine-1", "generation": 3, "annotations": annotations or {}}
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    strategy = {} if "running" in spec else {"runStrategy": "Always"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"domain": {}}}
    whole = {"metadata": metadata, "spec": {**strategy, "template": template, **spec}}
    return {**whole, "status": status} if status is not None else whole


def machine_view(document: Json) -> VirtualMachine:
    return msgspec.convert(document, VirtualMachine)


def instance(
    phase: str | None = None,
    *,
    owner: str = "machine-1",
    uid: str = "aaaaaaaa-0001",
    deleted: bool = False,
    ran: tuple[float, float] | None = None,
    annotations: Json | None = None,
    spec: Json | None = None,
    finalizers: list[str] | None = None,
    **status: Any,
) -> Json:
    """`ran` is from when to when the guest ran, in seconds from now."""
    metadata: Json = {"name": "web", "namespace": "shop", "uid": uid, "generation": 1, "annotations": annotations or {}}
    metadata["labels"] = {"app": "web"}
    metadata["finalizers"] = [labels.INSTANCE_FINALIZER] if finalizers is None else finalizers
    if owner:
        reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    if phase:
        status["phase"] = phase
    if ran:
        phases = {"Running": ran[0], phase or "Failed": ran[1]} if phase != "Running" else {"Running": ran[0]}
        listed = [{"phase": name, "phaseTransitionTimestamp": later(at)} for name, at in phases.items()]
        status["phaseTransitionTimestamps"] = listed
    whole = {"metadata": metadata, "spec": spec or {"domain": {}}}
    return {**whole, "status": status} if status else whole


def instance_view(document: Json) -> VirtualMachineInstance:
    return msgspec.convert(document, VirtualMachineInstance)


def data_volume(name: str, phase: str = "Succeeded", owner: str = "machine-1", **status: Any) -> DataVolume:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": owner, "controller": True}
    source = {"source": {"blank": {}}, "pvc": {}}
    metadata = {"name": name, "namespace": "shop", "ownerReferences": [reference]}
    return msgspec.convert({"metadata": metadata, "spec": source, "status": {"phase": phase, **status}}, DataVolume)


def pod(
    report: GuestReport | None = None,
    *,
    phase: str = "Pending",
    node: str = "",
    ready: bool | None = None,
    deleted: bool = False,
    name: str = "virt-launcher-web-aaaaaaaa",
    conditions: list[Json] | None = None,
    grace: int | None = None,
    **metadata: Any,
) -> Pod:
    listed = list(conditions or [])
    if report is not None:
        listed.append({"type": labels.GUEST_CONDITION, "status": "True", "message": msgspec.json.encode(report).decode()})
    if ready is not None:
        listed.append({"type": "Ready", "status": "True" if ready else "False"})
    about: Json = {"name": name, "namespace": "shop", "uid": f"uid-of-{name}", **metadata}
    if deleted:
        about["deletionTimestamp"] = later(0)
    spec = {"nodeName": node, "terminationGracePeriodSeconds": grace}
    return msgspec.convert({"metadata": about, "spec": spec, "status": {"phase": phase, "conditions": listed}}, Pod)


def node(name: str = "node-1", ready: str = "True", *taints: str) -> Node:
    conditions = [{"type": "Ready", "status": ready}]
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}, Node)


def claim(name: str, *modes: str) -> PersistentVolumeClaim:
    spec = {"accessModes": list(modes)}
    metadata = {"name": name, "namespace": "shop"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}, PersistentVolumeClaim)
