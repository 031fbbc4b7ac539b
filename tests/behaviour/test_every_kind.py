"""Each kind that both engines serve goes through its whole life."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import pod, workload
from tests.engines.api import Api, Json
from tests.engines.resources import (
    AUTOSCALERS,
    BUDGETS,
    CLAIMS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
    Resource,
)
from tests.engines.waiting import eventually

SIZE = {"storage": "1Gi"}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
BINDING: Json = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "example:nobody"}],
}
# What runs pods in a real cluster finds no node for them.
NOWHERE = {"metadata": {"labels": {"app": "x"}}, "spec": {**pod("x")["spec"], "nodeSelector": {"no": "where"}}}
ONCE = {**NOWHERE, "spec": {**NOWHERE["spec"], "restartPolicy": "Never"}}
BODIES: dict[Resource, Json] = {
    PODS: {"spec": pod("x")["spec"]},
    NODES: {"spec": {"podCIDR": "10.1.0.0/24"}},
    CLAIMS: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}}},
    VOLUMES: {"spec": {"capacity": SIZE, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
    STORAGE_CLASSES: {"provisioner": "example.com/none", "parameters": {"a": "b"}},
    SECRETS: {"data": {"k": "dg=="}},
    CONFIG_MAPS: {"data": {"k": "v"}},
    EVENTS: {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "Started", "message": "It has.", "type": "Normal"},
    LEASES: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 10}},
    AUTOSCALERS: {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"},
            "maxReplicas": 3,
            "minReplicas": 2,
        }
    },
    BUDGETS: {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
    PRIORITY_CLASSES: {"value": 7, "description": "some"},
    REPLICA_SETS: {"spec": workload("x")["spec"]},
    DEPLOYMENTS: {"spec": workload("x")["spec"]},
    STATEFUL_SETS: {"spec": {**workload("x")["spec"], "serviceName": "x"}},
    DAEMON_SETS: {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": NOWHERE}},
    CRON_JOBS: {"spec": {"suspend": True, "schedule": "@daily", "jobTemplate": {"spec": {"template": ONCE}}}},
    JOBS: {"spec": {"suspend": True, "template": ONCE}},
    CONTROLLER_REVISIONS: {"revision": 3, "data": {"any": {"thing": 1}}},
    SERVICE_ACCOUNTS: {"automountServiceAccountToken": False},
    ROLES: {"rules": RULES},
    CLUSTER_ROLES: {"rules": RULES},
    ROLE_BINDINGS: BINDING,
    CLUSTER_ROLE_BINDINGS: BINDING,
}


def holds(whole: object, part: object) -> bool:
    """Whether all that was sent is there; the rest was filled in."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and holds(whole[name], value) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(holds, whole, part))
    return whole == part


@pytest.mark.parametrize("resource", BODIES, ids=lambda resource: resource.kind)
async def test_it_is_created_found_changed_watched_and_deleted(
    api: Api, namespace: str, unique: Callable[..., str], resource: Resource
) -> None:
    name, body = unique(), BODIES[resource]
    where = namespace if resource.namespaced else ""
    if resource is EVENTS:
        body = {**body, "involvedObject": {**body["involvedObject"], "namespace": namespace}}
    created = await api.create(resource, {"metadata": {"name": name}, **body}, where)
    assert created.code == 201, created.body
    assert holds(created.ok, body)
    assert (created.ok["kind"], created.ok["apiVersion"]) == (resource.kind, resource.api_version)

    only = {"fieldSelector": f"metadata.name={name}"}
    async with api.watch(resource, where, resourceVersion=created.ok["metadata"]["resourceVersion"], **only) as watch:
        changed = await api.patch(resource, name, {"metadata": {"labels": {"x": "y"}}}, where)
        assert changed.ok["metadata"]["labels"]["x"] == "y"
        assert holds((await api.get(resource, name, where)).ok, body)
        (listed,) = (await api.list(resource, where, **only)).items
        assert listed["metadata"]["uid"] == created.ok["metadata"]["uid"]
        assert name in (await api.list(resource, **only)).names

        assert (await api.delete(resource, name, where)).code == 200
        events = await watch.until("DELETED", patience=15)
        assert {event.type for event in events[:-1]} == {"MODIFIED"}

    async def gone() -> bool:
        return (await api.get(resource, name, where)).code == 404

    await eventually(gone)  # claims and volumes are held until somebody has looked whether they are in use
