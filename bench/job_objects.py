"""Jobs, their pods, workloads and budgets as an API server would tell of them, without one: caches and all that follows them are
the real ones, and nothing else takes time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.kube.cache import Caches
from herder.kube.cache.reading import INITIAL_END
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit
from herder.kube.resources import BUDGETS, DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, Anything
from herder.kube.transport import Call, Reply

Document = dict[str, Any]
# Of each workload: those that jobs are about, and others.
OTHERS = 5
NAMESPACES = 50


class Told:
    """A transport over which is told what the benchmark says."""

    def __init__(self) -> None:
        self._objects: dict[str, list[Document]] = {}
        self._news: dict[str, asyncio.Queue[bytes]] = {}
        self._version = 0

    def put(self, resource: Anything, document: Document) -> Document:
        self._objects.setdefault(resource.plural, []).append(self._versioned(document))
        return document

    def change(self, resource: Anything, document: Document) -> None:
        self._news[resource.plural].put_nowait(_line("MODIFIED", self._versioned(document)))

    async def send(self, call: Call) -> Reply:
        """Discovery: there is nothing but what is always there."""
        return Reply(200, msgspec.json.encode({"kind": "APIGroupList", "groups": []}))

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        yield self._pieces(call.path.rpartition("/")[2])

    async def _pieces(self, plural: str) -> AsyncIterator[bytes]:
        for document in self._objects.get(plural, ()):
            yield _line("ADDED", document)
        mark = {"metadata": {"resourceVersion": str(self._version), "annotations": {INITIAL_END: "true"}}}
        yield _line("BOOKMARK", mark)
        news = self._news.setdefault(plural, asyncio.Queue())
        while True:
            yield await news.get()

    async def close(self) -> None:
        return

    def _versioned(self, document: Document) -> Document:
        self._version += 1
        document["metadata"] = {**document["metadata"], "resourceVersion": str(self._version)}
        return document


def _line(kind: str, document: Document) -> bytes:
    return msgspec.json.encode({"type": kind, "object": document}) + b"\n"


def kit_of(told: Told) -> Kit:
    client, world = Client(told, "bench"), RealWorld()
    caches = Caches(client, world, CollectorRegistry())
    return Kit(client, caches, Recorder(client, world, "bench", registry=CollectorRegistry()), world, CollectorRegistry())


def fill(told: Told, jobs: int, nodes: int, workloads: int) -> tuple[list[Document], list[Document]]:
    """The jobs, and their pods; a budget for every second workload."""
    each = jobs // workloads
    for number in range(workloads):
        _workload(told, number, each + OTHERS)
        if number % 2:
            told.put(BUDGETS, _budget(number))
        for other in range(OTHERS):
            told.put(PODS, pod(number, each + other, nodes))
    pods = [told.put(PODS, pod(number % workloads, number // workloads, nodes)) for number in range(jobs)]
    return [told.put(JOBS, job(number, pods[number])) for number in range(jobs)], pods


def job(number: int, of: Document) -> Document:
    meta = of["metadata"]
    reference = {"namespace": meta["namespace"], "name": meta["name"]}
    made = f"2026-01-01T00:{number % 60:02d}:{number % 59:02d}Z"
    return {
        "metadata": {"name": f"job-{number:05d}", "uid": f"job-{number}", "creationTimestamp": made},
        "spec": {"podRef": reference},
    }


def pod(workload: int, number: int, nodes: int) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"w-{workload}-1", "uid": f"rs-{workload}", "controller": True}
    metadata = {
        "name": f"w-{workload}-{number}",
        "namespace": _namespace(workload),
        "uid": f"pod-{workload}-{number}",
        "labels": {"app": f"w-{workload}"},
        "ownerReferences": [owner],
    }
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": f"node-{(workload * 31 + number) % nodes}"}
    status = {"phase": "Running", "qosClass": "Burstable", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": metadata, "spec": spec, "status": status}


def ready(of: Document, is_ready: bool) -> Document:
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    return {**of, "status": {**of["status"], "conditions": conditions}}


def running(of: Document, its_pod: Document, phase: str = "Running") -> Document:
    meta = its_pod["metadata"]
    workload = {"kind": "Deployment", "namespace": meta["namespace"], "uid": meta["uid"].replace("pod", "d").rpartition("-")[0]}
    status = {
        "phase": phase,
        "podUID": meta["uid"],
        "sourceNode": its_pod["spec"]["nodeName"],
        "startTime": "2026-01-02T00:00:00Z",
        "workloadRef": workload,
    }
    return {**of, "status": status}


def settings(text: str) -> Document:
    return {"metadata": {"name": "herder-config", "namespace": "herder-system", "uid": "config"}, "data": {"jobs.yaml": text}}


def _namespace(workload: int) -> str:
    return f"team-{workload % NAMESPACES}"


def _workload(told: Told, number: int, replicas: int) -> None:
    common = {"namespace": _namespace(number), "generation": 1}
    status = {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas}
    deployment = {"name": f"w-{number}", "uid": f"d-{number}", **common}
    told.put(DEPLOYMENTS, {"metadata": deployment, "spec": {"replicas": replicas}, "status": status})
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"w-{number}", "uid": f"d-{number}", "controller": True}
    replica_set = {"name": f"w-{number}-1", "uid": f"rs-{number}", "ownerReferences": [owner], **common}
    told.put(REPLICA_SETS, {"metadata": replica_set, "spec": {"replicas": replicas}, "status": status})


def _budget(number: int) -> Document:
    metadata = {"name": f"w-{number}", "namespace": _namespace(number), "uid": f"budget-{number}", "generation": 1}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": f"w-{number}"}}}
    status = {"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 10, "desiredHealthy": 8}
    return {"metadata": metadata, "spec": spec, "status": status}
