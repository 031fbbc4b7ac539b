"""Claims, volumes and pods that use them."""

from collections.abc import Callable
from typing import Any

from tests.engines.api import Api, Json
from tests.engines.resources import CLAIMS, PODS, VOLUMES, Resource
from tests.engines.waiting import eventually

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def claim(name: str = "disk", **spec: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**asked, **spec}}


def volume_for(made: Json, name: str = "", *, with_uid: bool = True, policy: str = "Delete", **metadata: Any) -> Json:
    """As a provisioner makes it: for this very claim."""
    own = made["metadata"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": own["namespace"], "name": own["name"]}
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    return {
        "metadata": {"name": name or f"pvc-{own['uid']}", "annotations": {PROVISIONED_BY: "herder.dev/local"}, **metadata},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {**reference, **({"uid": own["uid"]} if with_uid else {})},
            "storageClassName": made["spec"].get("storageClassName", ""),
            "persistentVolumeReclaimPolicy": policy,
            "local": {"path": "/herder/volumes/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


async def becomes(api: Api, resource: Resource, name: str, phase: str, namespace: str = "") -> Json:
    async def look() -> Json:
        found = (await api.get(resource, name, namespace)).ok
        assert found["status"]["phase"] == phase, found
        return found

    return await eventually(look, patience=30)


async def is_gone(api: Api, resource: Resource, name: str, namespace: str = "") -> bool:
    async def look() -> bool:
        return (await api.get(resource, name, namespace)).code == 404

    return await eventually(look, patience=30)


async def bound_pair(api: Api, namespace: str, **more: Any) -> tuple[Json, Json]:
    made = (await api.create(CLAIMS, claim(), namespace)).ok
    volume = (await api.create(VOLUMES, volume_for(made, **more))).ok
    name = volume["metadata"]["name"]
    return await becomes(api, CLAIMS, "disk", "Bound", namespace), await becomes(api, VOLUMES, name, "Bound")


async def user_of_claim(api: Api, namespace: str, unique: Callable[..., str], *, bound: bool = True) -> str:
    """A pod that mounts the claim, on a node that nobody looks after."""
    name = unique("pod")
    spec = {
        "containers": [{"name": "a", "image": "a"}],
        "schedulerName": "nobody",
        "volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}],
    }
    node = {"nodeName": "nowhere"} if bound else {}
    (await api.create(PODS, {"metadata": {"name": name}, "spec": {**spec, **node}}, namespace)).ok  # noqa: B018
    return name
