"""Pods in the states that bindings, evictions and budgets care about."""

from typing import Any

from tests.behaviour.manifests import absent_node, owner, pod
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import BUDGETS, PODS

# Nobody of this name places pods, so that the real scheduler leaves them to the test.
NOBODY = "nobody"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


async def waiting_pod(api: Api, namespace: str, name: str, metadata: Json | None = None, **spec: Any) -> Json:
    return (await api.create(PODS, pod(name, metadata, schedulerName=NOBODY, **spec), namespace)).ok


async def running_pod(
    api: Api,
    namespace: str,
    name: str,
    app: str,
    *,
    ready: bool = True,
    phase: str = "Running",
    of: Json | None = None,
    placed: bool = True,
) -> Json:
    """One that is on a node, as its kubelet would report it. One that is not `placed` may stay for long."""
    metadata = {"labels": {"app": app}, **({"ownerReferences": [owner(of, controller=True)]} if of else {})}
    await waiting_pod(api, namespace, name, metadata, **({"nodeName": absent_node(namespace)} if placed else {}))
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    return (await api.patch(PODS, name, {"status": status}, namespace, "status")).ok


async def budget(api: Api, namespace: str, app: str, name: str = "", **spec: Any) -> Json:
    body = {"metadata": {"name": name or app}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    return (await api.create(BUDGETS, body, namespace)).ok


async def budget_status(api: Api, namespace: str, name: str) -> Json:
    return (await api.get(BUDGETS, name, namespace)).ok["status"]


def numbers(status: Json) -> tuple[int, int, int, int]:
    """Expected, healthy, desired, allowed."""
    return tuple(status.get(field, -1) for field in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"))  # type: ignore[return-value]


def eviction(name: str, version: str = "v1", **more: Any) -> Json:
    return {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": name}, **more}


async def evict(api: Api, namespace: str, name: str, body: Json | None = None, **query: Any) -> Reply:
    return await api.request("POST", PODS.path(namespace, name, "eviction"), body if body is not None else eviction(name), **query)


def binding(name: str, node: str, **metadata: Any) -> Json:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


async def bind(api: Api, namespace: str, name: str, body: Json | None = None, **query: Any) -> Reply:
    return await api.request("POST", PODS.path(namespace, name, "binding"), body or binding(name, absent_node(namespace)), **query)


def condition_of(obj: Json, kind: str) -> Json:
    return next((one for one in obj["status"].get("conditions", []) if one["type"] == kind), {})
