"""The objects that the tests write, as small as the API allows, and where the examples are."""

from pathlib import Path
from typing import Any

import yaml

from herder.api.registry import KINDS, info_of
from tests.e2e.kubectl import Kubectl

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def config_map(name: str, labels: Json | None = None, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}, "data": data}


def secret(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def pod(name: str, node: str = "", labels: Json | None = None) -> Json:
    spec: Json = {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | ({"nodeName": node} if node else {})}


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, replicas: int) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("unused")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def machine(name: str, run_strategy: str = "Halted", **metadata: Any) -> Json:
    spec = {"runStrategy": run_strategy, "template": {"spec": {"domain": {}}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name, **metadata}, "spec": spec}


def pool(name: str, replicas: int) -> Json:
    spec = {"replicas": replicas, "template": {"spec": {"running": False, "template": {"spec": {"domain": {}}}}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": name}, "spec": spec}


def owned(document: Json, owner: Json) -> Json:
    """The same object, with an owner that a foreground deletion waits behind."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "blockOwnerDeletion": True}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return document | {"metadata": document["metadata"] | {"ownerReferences": [reference]}}


def event(name: str, namespace: str, about: Json, message: str) -> Json:
    metadata = about["metadata"]
    regarding = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    moment = "2026-01-02T03:04:05Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": regarding | ({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
        "reason": "Noticed",
        "message": message,
        "type": "Normal",
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": "tests"},
    }


def example_of(kind: str) -> Json:
    """The first example of one of our kinds."""
    documents = (document for path in EXAMPLES for document in yaml.safe_load_all(path.read_text()))
    return next(document for document in documents if document["kind"] == kind)


def is_namespaced(document: Json) -> bool:
    info = info_of(document)
    return info is None or info.namespaced


OUR_KINDS = [info.kind for info in KINDS]


def placed(here: Kubectl, documents: list[Json]) -> Kubectl:
    """Where they belong: the settings of the cluster are in a namespace of their own, everything else in that of the test."""
    return here.inside("kubevirt") if any(document["kind"] == "KubeVirt" for document in documents) else here


def prepare(kubectl: Kubectl, documents: list[Json]) -> None:
    """Only what is there can be moved: a migration is of an instance, and a job of a pod that somebody controls. Settings that came
    with the engine make room."""
    for document in documents:
        if document["kind"] == "PodMigrationJob":
            reference = document["spec"]["podRef"]
            _owned_pod(kubectl.inside(reference["namespace"]), reference["name"])
        if document["kind"] == "KubeVirt":
            kubectl("delete", "kubevirt", "kubevirt", "--ignore-not-found")
        if document["kind"] == "VirtualMachineInstanceMigration":
            name, spec = document["spec"]["vmiName"], {"domain": {}}
            instance = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec}
            kubectl.create(instance)


def _owned_pod(kubectl: Kubectl, name: str) -> None:
    """Of a controller that never looks after it. Several tests move it."""
    if kubectl("get", "pod", name, "--ignore-not-found", "-o", "name"):
        return
    kubectl.create(config_map(f"owner-of-{name}"))
    owner = kubectl.json("get", "configmap", f"owner-of-{name}")["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], "controller": True}
    made = pod(name)
    kubectl.create({**made, "metadata": {**made["metadata"], "ownerReferences": [reference]}})
