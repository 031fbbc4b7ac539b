"""DataVolumes, claims, volumes and their pods for tests of rules."""

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.api.imports import ImportReport
from herder.api.kinds import DataVolume
from herder.api.storage import CONTENT_FINALIZER, PROVISIONED_BY, storage_class
from herder.rules.volumes import DataVolumePlan, DataVolumeSnapshot, plan_data_volume
from tests.unit.rules.machines import NOW, Json, later

UID = "dddddddd-0001"
CLASS = msgspec.convert({**storage_class(), "metadata": {"name": labels.STORAGE_CLASS, "annotations": {}}}, StorageClass)
SIZED: Json = {"resources": {"requests": {"storage": "1Gi"}}}
HTTP: Json = {"http": {"url": "http://images.example.com/a"}}


def data_volume(status: Json | None = None, *, source: Json | None = None, deleted: bool = False, **spec: Any) -> Json:
    metadata: Json = {"name": "disk", "namespace": "shop", "uid": UID, "generation": 1, "annotations": {}}
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    form = {} if "pvc" in spec else {"storage": SIZED}
    whole: Json = {"metadata": metadata, "spec": {"source": source or HTTP, **form, **spec}}
    return {**whole, "status": status} if status is not None else whole


def claim(
    phase: str = "Bound", *, owner: str = UID, name: str = "disk", namespace: str = "shop", **metadata: Any
) -> PersistentVolumeClaim:
    reference = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": name, "uid": owner, "controller": True}
    own = {
        "name": name,
        "namespace": namespace,
        "uid": f"claim-{name}",
        "ownerReferences": [reference] if owner else [],
        **metadata,
    }
    spec = {"volumeName": f"pvc-{name}" if phase == "Bound" else "", "storageClassName": labels.STORAGE_CLASS, **SIZED}
    return msgspec.convert(
        {"metadata": own, "spec": {**spec, "accessModes": ["ReadWriteMany"]}, "status": {"phase": phase}}, PersistentVolumeClaim
    )


def volume(
    name: str = "disk", *, size: str = "1Gi", phase: str = "Bound", storage: str = "a", ours: bool = True, **more: Any
) -> Json:
    metadata = {
        "name": f"pvc-{name}",
        "uid": f"volume-{name}",
        "labels": {labels.STORAGE: storage},
        "annotations": {PROVISIONED_BY: labels.PROVISIONER if ours else "example.com/other"},
        "finalizers": [CONTENT_FINALIZER],
        **more.pop("metadata", {}),
    }
    spec = {"capacity": {"storage": size}, "persistentVolumeReclaimPolicy": "Delete", **more}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def volume_view(document: Json) -> PersistentVolume:
    return msgspec.convert(document, PersistentVolume)


def importer(attempt: int = 0, phase: str = "Running", *, node: str = "n1", deleted: bool = False, **report: Any) -> Pod:
    text = msgspec.json.encode(ImportReport(**report)).decode()
    metadata: Json = {"name": f"importer-dddddddd-{attempt}", "namespace": "shop", "uid": f"pod-{attempt}"}
    metadata["labels"] = {labels.IMPORT_ATTEMPT: str(attempt)}
    if deleted:
        metadata["deletionTimestamp"] = later(0)
    condition = {"type": labels.IMPORT_CONDITION, "status": "False", "message": text}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase, "conditions": [condition]}}, Pod
    )


def node(name: str = "n1", storage: str = "a", *, schedulable: bool = True, cordoned: bool = False) -> Node:
    marks = {labels.STORAGE: storage, **({labels.SCHEDULABLE: "true"} if schedulable else {})}
    return msgspec.convert({"metadata": {"name": name, "labels": marks}, "spec": {"unschedulable": cordoned}}, Node)


def plan(document: Json, now: float = NOW, **more: Any) -> DataVolumePlan:
    given: dict[str, Any] = {"classes": (CLASS,), "nodes": {"n1": node()}, **more}
    return plan_data_volume(DataVolumeSnapshot(msgspec.convert(document, DataVolume), document, **given), now)


def bound(document: Json, now: float = NOW, **more: Any) -> DataVolumePlan:
    """The claim is there and has its volume."""
    return plan(document, now, claim=claim(), volume=volume_view(volume()), **more)
