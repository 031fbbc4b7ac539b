"""Clusters in a few words, for the tests of the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from herder.api.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.rules.placement import RULES, Decision, Needs, Offer, Snapshot, decide, message, needs_of

Document = Mapping[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def node(
    name: str, zone: str = "", *, taints: Sequence[Document] = (), labels: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """`cpu`, `memory`, `pods` and others as they stand in allocatable; `unschedulable`."""
    cordoned = {"unschedulable": True} if more.pop("unschedulable", False) else {}
    offered = {"cpu": "4", "memory": "8Gi", "pods": "110"} | {key.replace("__", "/"): str(value) for key, value in more.items()}
    own = {HOST: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    return {
        "metadata": {"name": name, "labels": own},
        "spec": {"taints": list(taints), **cordoned},
        "status": {"allocatable": offered},
    }


def pod(
    name: str = "p", *, on: str = "", namespace: str = "default", labels: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """`requests` for its one container; the rest is its spec."""
    requests = spec.pop("requests", {})
    ports = spec.pop("ports", [])
    container = {"name": "c", "image": "i", "resources": {"requests": requests}, "ports": ports}
    placed = {"nodeName": on} if on else {}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "labels": dict(labels or {}),
        **spec.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": {"containers": [container], **placed, **spec}}


def read(document: Document) -> Needs:
    return needs_of(msgspec.convert(document, Pod))


class Cluster:
    def __init__(self, *objects: Document) -> None:
        self.snapshot = Snapshot()
        self.snapshot.put_namespace("default", {})
        for document in objects:
            self.add(document)

    def add(self, document: Document) -> None:
        if "containers" in document.get("spec", {}):
            self.snapshot.put_pod(read(document), document["spec"].get("nodeName", ""))
        elif "kind" in document:
            self._add_kind(document)
        else:
            self.snapshot.put_node(Offer.of(msgspec.convert(document, Node)))

    def _add_kind(self, document: Document) -> None:
        storage = self.snapshot.storage
        match document["kind"]:
            case "PersistentVolumeClaim":
                claim = msgspec.convert(document, PersistentVolumeClaim)
                storage.claims[claim.namespace, claim.name] = claim
            case "PersistentVolume":
                volume = msgspec.convert(document, PersistentVolume)
                storage.volumes[volume.name] = volume
            case "StorageClass":
                made = msgspec.convert(document, StorageClass)
                storage.classes[made.name] = made
            case _:
                namespace = msgspec.convert(document, Namespace)
                self.snapshot.put_namespace(namespace.name, namespace.labels)

    def decide(self, document: Document) -> Decision:
        return decide(read(document), self.snapshot, RULES)

    def fitting(self, document: Document) -> list[str]:
        mask = self.decide(document).fitting
        return sorted(name for name, row in self.snapshot.nodes.rows.items() if mask[row])

    def message(self, document: Document) -> str:
        return message(read(document), self.decide(document), self.snapshot)

    def scores(self, document: Document) -> dict[str, float]:
        decision = self.decide(document)
        assert decision.scores is not None
        rows = self.snapshot.nodes.rows
        return {name: round(float(decision.scores[row]), 3) for name, row in rows.items() if decision.fitting[row]}
