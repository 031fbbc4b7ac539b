"""The objects that the behaviour tests write, as small as the API allows."""

from typing import Any

Json = dict[str, Any]
IMAGE = "registry.example.com/app:1"


def meta(name: str, **more: Any) -> Json:
    return {"name": name, **more}


def config_map(name: str, data: Json | None = None, **metadata: Any) -> Json:
    return {"metadata": meta(name, **metadata), **({"data": data} if data is not None else {})}


def container(name: str = "main", **more: Any) -> Json:
    return {"name": name, "image": IMAGE, **more}


def pod(name: str, metadata: Json | None = None, **spec: Any) -> Json:
    return {"metadata": meta(name, **(metadata or {})), "spec": {"containers": [container()], **spec}}


def node(name: str, **metadata: Any) -> Json:
    return {"metadata": meta(name, **metadata)}


def absent_node(namespace: str) -> str:
    """One that never was, so that nothing ends the pods of it; but a real cluster does, 40 s after it first misses a node.

    So each test, with its own namespace, has its own.
    """
    return f"absent-{namespace}"


def template(labels: Json, **spec: Any) -> Json:
    return {"metadata": {"labels": labels}, "spec": {"containers": [container()], **spec}}


def workload(name: str, replicas: int | None = 0, **spec: Any) -> Json:
    """A Deployment, ReplicaSet or StatefulSet; with no replicas a real controller has nothing to make."""
    labels = {"app": name}
    count = {} if replicas is None else {"replicas": replicas}
    return {"metadata": meta(name), "spec": {**count, "selector": {"matchLabels": labels}, "template": template(labels), **spec}}


def owner(of: Json, *, block: bool | None = None, controller: bool | None = None) -> Json:
    reference = {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}
    flags = {"blockOwnerDeletion": block, "controller": controller}
    return reference | {name: flag for name, flag in flags.items() if flag is not None}
