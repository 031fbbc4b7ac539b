"""Pods, ReplicaSets and Deployments as they are stored, and as the rules read them."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Deployment, Pod, ReplicaSet
from herder.api.world import timestamp
from herder.rules.workloads import DeploymentSnapshot
from herder.rules.workloads.templates import Member

Json = dict[str, Any]
NOW = 1_800_000_000.0
TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}


def pod(name: str, *, ready: float | None = None, node: str = "n1", phase: str = "Running", age: float = 100.0, **more: Any) -> Pod:
    """`ready`: for how many seconds."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": more.get("uid", f"uid-{name}"),
        "labels": more.get("labels", {"app": "web"}),
        "annotations": more.get("annotations", {}),
        "creationTimestamp": timestamp(NOW - age),
    }
    if more.get("deleted"):
        metadata["deletionTimestamp"] = timestamp(NOW)
    if owner := more.get("owner"):
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": owner, "controller": True}
        ]
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": timestamp(NOW - ready)}]
    # As a node says it of one that has ended: how many seconds after it came there.
    lasted, came = more.get("lasted"), NOW - age + more.get("waited", 0.0)
    ended = {} if lasted is None else {"state": {"terminated": {"exitCode": 1, "finishedAt": timestamp(came + lasted)}}}
    statuses = [{"name": "main", "restartCount": more.get("restarts", 0), **ended}]
    started = {} if lasted is None else {"startTime": timestamp(came)}
    status = {"phase": phase, "conditions": conditions, "containerStatuses": statuses, **started}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node}, "status": status}, type=Pod)


def replica_set(name: str = "web", replicas: int = 1, *, template: Json | None = None, **more: Any) -> ReplicaSet:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "generation": more.get("generation", 1),
        "annotations": more.get("annotations", {}),
        "creationTimestamp": timestamp(NOW - more.get("age", 100.0)),
        **({"deletionTimestamp": timestamp(NOW)} if more.get("deleted") else {}),
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template or TEMPLATE,
        **more.get("spec", {}),
    }
    status = {"observedGeneration": 1, **more.get("status", {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, type=ReplicaSet)


def member(name: str, replicas: int, image: str = "web:1", **more: Any) -> Member:
    template = template_with(image)
    template["metadata"]["labels"]["pod-template-hash"] = name
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "terminatingReplicas": 0}
    return Member(replica_set(name, replicas, template=template, **{"status": status, **more}), template)


def template_with(image: str) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def deployment(replicas: int = 3, image: str = "web:1", sets: tuple[Member, ...] = (), **more: Any) -> DeploymentSnapshot:
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": "uid-web",
        "generation": 1,
        "annotations": more.get("annotations", {}),
        **({"deletionTimestamp": timestamp(NOW)} if more.get("deleted") else {}),
    }
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template_with(image),
        "strategy": strategy,
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        **more.get("spec", {}),
    }
    view = msgspec.convert({"metadata": metadata, "spec": spec, "status": more.get("status", {})}, type=Deployment)
    return DeploymentSnapshot(view, template_with(image), sets, more.get("running", frozenset()))
