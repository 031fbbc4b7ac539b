"""Clusters with Deployments whose pods can be moved, and jobs of them, for tests of what people are told."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Deployment, Pod, ReplicaSet
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.gather import Cluster, Everything
from tests.unit.rules.jobs.objects import Json, reference

CREATED = "2026-01-01T00:00:00Z"


def web_pod(name: str, *, node: str = "a", app: str = "web", spec: Json | None = None, **meta: Any) -> Json:
    """Of the Deployment of its app; ready, and on a node."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": {"app": app}, **meta}
    metadata.setdefault("ownerReferences", [reference("ReplicaSet", f"{app}-1")])
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": containers, **(spec or {})}, "status": status}


def view(document: Json) -> Pod:
    return msgspec.convert(document, Pod)


def deployment(app: str, replicas: int) -> tuple[Deployment, ReplicaSet]:
    about = {"generation": 1, "namespace": "shop"}
    status = {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas}
    top = {"metadata": {**about, "name": app, "uid": f"uid-{app}"}, "spec": {"replicas": replicas}, "status": status}
    owned = {**about, "name": f"{app}-1", "uid": f"uid-{app}-1", "ownerReferences": [reference("Deployment", app)]}
    below = {"metadata": owned, "spec": {"replicas": replicas}, "status": status}
    return msgspec.convert(top, Deployment), msgspec.convert(below, ReplicaSet)


def job(
    name: str, pod: str, phase: str = "", *, created: str = CREATED, annotations: Json | None = None, **more: Any
) -> PodMigrationJob:
    """`more`: of its status, by the names in the API; `spec` beside the pod."""
    spec = more.pop("spec", {})
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, "annotations": annotations or {}}
    status = {"status": {**({"phase": phase} if phase else {}), **more}} if phase or more else {}
    kind = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob"}
    whole = {**kind, "metadata": metadata, "spec": {"podRef": {"namespace": "shop", "name": pod}, **spec}, **status}
    return msgspec.convert(whole, PodMigrationJob)


def running(name: str, pod: str, node: str = "a", app: str = "web", **more: Any) -> PodMigrationJob:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": app, "uid": f"uid-{app}"}
    about = {"podUID": f"uid-{pod}", "sourceNode": node, "workloadRef": workload}
    status: Json = {"phase": "Running", "strategy": "Reservation", "startTime": CREATED, **about, **more}
    return job(name, pod, **status)


def cluster(*pods: Json, jobs: tuple[PodMigrationJob, ...] = (), apps: dict[str, int] | None = None, **more: Any) -> Cluster:
    """`apps`: how many replicas each Deployment wants; as many as there are pods without."""
    names = dict.fromkeys(pod["metadata"]["labels"]["app"] for pod in pods)
    counted = {app: sum(pod["metadata"]["labels"]["app"] == app for pod in pods) for app in names}
    made = [deployment(app, replicas) for app, replicas in (apps or counted).items()]
    return Cluster(
        Everything(
            jobs=jobs,
            pods=[view(pod) for pod in pods],
            deployments=[top for top, _ in made],
            replica_sets=[below for _, below in made],
            **more,
        )
    )
