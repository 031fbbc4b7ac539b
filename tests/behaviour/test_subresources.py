"""Status and scale are written apart from the rest."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import node, pod, workload
from tests.engines.api import Api
from tests.engines.resources import BUDGETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS, Resource

SCALABLE = pytest.mark.parametrize("resource", [DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS], ids=lambda resource: resource.kind)


async def test_a_status_sent_at_creation_is_dropped(api: Api, namespace: str) -> None:
    body = {**workload("a"), "status": {"observedGeneration": 7, "replicas": 9}}
    created = (await api.create(REPLICA_SETS, body, namespace)).ok
    assert created["status"] == {"replicas": 0}
    sent = {**pod("a"), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    assert (await api.create(PODS, sent, namespace)).ok["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_write_of_the_object_leaves_its_status(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a"), namespace)
    await api.patch(PODS, "a", {"status": {"phase": "Running"}}, namespace, "status")
    after = await api.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}, "status": {"phase": "Failed"}}, namespace)
    assert after.ok["metadata"]["labels"] == {"x": "y"}
    assert after.ok["status"]["phase"] == "Running"


async def test_a_write_of_the_status_leaves_the_spec_and_the_labels(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    patch = {"spec": {"replicas": 5}, "status": {"observedGeneration": 1}, "metadata": {"labels": {"x": "y"}}}
    after = (await api.patch(DEPLOYMENTS, "a", patch, namespace, "status")).ok
    assert after["spec"]["replicas"] == 0
    assert "labels" not in after["metadata"]
    assert after["status"]["observedGeneration"] == 1


async def test_the_status_can_be_put(api: Api, namespace: str) -> None:
    created = (await api.create(PODS, pod("a"), namespace)).ok
    body = {**created, "status": {"phase": "Running", "hostIP": "10.0.0.9"}}
    del body["metadata"]["resourceVersion"]  # a scheduler may write at the same time
    assert (await api.update(PODS, body, namespace, "status")).ok["status"]["hostIP"] == "10.0.0.9"


async def test_a_stale_write_of_the_status_is_a_conflict(api: Api, namespace: str) -> None:
    created = (await api.create(REPLICA_SETS, workload("a"), namespace)).ok
    await api.patch(REPLICA_SETS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    (await api.update(REPLICA_SETS, created, namespace, "status")).refused(409, "Conflict")


async def test_the_status_is_read_at_its_own_address_too(api: Api, namespace: str) -> None:
    await api.create(BUDGETS, {"metadata": {"name": "a"}, "spec": {"selector": {}}}, namespace)
    reply = await api.get(BUDGETS, "a", namespace, "status")
    assert reply.ok["kind"] == "PodDisruptionBudget"
    assert "spec" in reply.ok


async def test_a_node_reports_through_its_status(api: Api, unique: Callable[..., str]) -> None:
    name = unique("node")
    await api.create(NODES, node(name))
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    status = {"capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "3500m"}, "conditions": [condition]}
    after = (await api.patch(NODES, name, {"status": status}, "", "status")).ok["status"]
    assert after["allocatable"] == {"cpu": "3500m"}
    assert after["conditions"][0]["type"] == "Ready"
    await api.delete(NODES, name)


async def test_the_subresource_of_what_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    for subresource in ("status", "scale"):
        reply = await api.patch(DEPLOYMENTS, "absent", {}, namespace, subresource)
        assert reply.refused(404, "NotFound") == {"name": "absent", "group": "apps", "kind": "deployments"}


@SCALABLE
async def test_a_scale_shows_replicas_and_selector(api: Api, namespace: str, resource: Resource) -> None:
    created = (await api.create(resource, workload("a"), namespace)).ok
    scale = (await api.get(resource, "a", namespace, "scale")).ok
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["metadata"]["uid"] == created["metadata"]["uid"]
    assert scale["spec"] == {}  # zero is not shown
    assert scale["status"] == {"replicas": 0, "selector": "app=a"}


@SCALABLE
async def test_a_scale_changes_replicas(api: Api, namespace: str, resource: Resource) -> None:
    await api.create(resource, workload("a"), namespace)
    patched = await api.patch(resource, "a", {"spec": {"replicas": 2}}, namespace, "scale")
    assert (patched.ok["kind"], patched.ok["spec"]) == ("Scale", {"replicas": 2})
    assert (await api.get(resource, "a", namespace)).ok["spec"]["replicas"] == 2
    put: dict[str, Any] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": namespace}}
    reply = await api.request("PUT", resource.path(namespace, "a", "scale"), {**put, "spec": {"replicas": 1}})
    assert reply.ok["spec"] == {"replicas": 1}
    after = (await api.get(resource, "a", namespace)).ok
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (1, 3)


async def test_a_scale_below_zero_is_invalid(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    reply = await api.patch(DEPLOYMENTS, "a", {"spec": {"replicas": -1}}, namespace, "scale")
    details = reply.refused(422, "Invalid")
    assert (details["kind"], details["group"]) == ("Scale", "autoscaling")
    assert reply.causes == [("FieldValueInvalid", "spec.replicas")]


async def test_a_stale_scale_is_a_conflict(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    stale = (await api.get(DEPLOYMENTS, "a", namespace, "scale")).ok
    await api.patch(DEPLOYMENTS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    reply = await api.request("PUT", DEPLOYMENTS.path(namespace, "a", "scale"), {**stale, "spec": {"replicas": 1}})
    reply.refused(409, "Conflict")
