"""StatefulSets, their pods and claims as the rules read them."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import PersistentVolumeClaim, Pod, StatefulSet
from herder.api.world import timestamp
from herder.rules.workloads import StatefulSetSnapshot
from herder.rules.workloads.revisions import Revision
from herder.rules.workloads.stateful_set import pods_by_ordinal

from .things import NOW, pod, template_with

Json = dict[str, Any]
OLD = Revision(name="web-old", template=template_with("web:1"), number=1, uid="uid-old")
NEW = Revision(name="web-new", template=template_with("web:2"), number=2, uid="uid-new")
DATA: Json = {
    "metadata": {"name": "data", "labels": {"tier": "disk"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(replicas: int = 3, *, partition: int = 0, **more: Any) -> StatefulSet:
    metadata = {"name": "web", "namespace": "shop", "uid": "uid-web", "generation": 1, "annotations": more.get("annotations", {})}
    if more.get("deleted"):
        metadata["deletionTimestamp"] = timestamp(NOW)
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "serviceName": "peers",
        "template": template_with("web:2"),
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "revisionHistoryLimit": 2,
        **more.get("spec", {}),
    }
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": more.get("status", {})}, type=StatefulSet)


def member(ordinal: int, revision: Revision = NEW, *, ready: float | None = 100.0, **more: Any) -> Pod:
    """A pod of the set; ready, unless it is said to be otherwise."""
    name = f"web-{ordinal}"
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": revision.name}
    return pod(name, ready=ready, labels=labels, **more)


def claim(name: str, *owners: Json, **more: Any) -> PersistentVolumeClaim:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7", "ownerReferences": list(owners)}
    if more.get("deleted"):
        metadata["deletionTimestamp"] = timestamp(NOW)
    return msgspec.convert({"metadata": metadata}, type=PersistentVolumeClaim)


def owner(kind: str, name: str, uid: str, *, controller: bool = True) -> Json:
    api_version = {"Pod": "v1", "StatefulSet": "apps/v1"}.get(kind, "x/v1")
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller, "blockOwnerDeletion": True}


def snapshot(
    one: StatefulSet, *pods: Pod, claims: tuple[PersistentVolumeClaim, ...] = (), templates: tuple[Json, ...] = (), **more: Any
) -> StatefulSetSnapshot:
    return StatefulSetSnapshot(
        stateful_set=one,
        current=more.pop("current", NEW),
        update=NEW,
        claim_templates=templates,
        pods=pods_by_ordinal(one, list(pods)),
        claims={found.name: found for found in claims},
        **more,
    )
