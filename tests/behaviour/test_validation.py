"""Objects of the built-in kinds that cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import absent_node, config_map, container, pod, workload
from tests.engines.api import Api, Json
from tests.engines.resources import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    Resource,
)

INVALID, REQUIRED, FORBIDDEN = "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"
UNSUPPORTED, DUPLICATE, NOT_FOUND = "FieldValueNotSupported", "FieldValueDuplicate", "FieldValueNotFound"


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"containers": []}, [(REQUIRED, "spec.containers")]),
        ({"containers": [container(), container()]}, [(DUPLICATE, "spec.containers[1].name")]),
        ({"containers": [{"name": "a"}]}, [(REQUIRED, "spec.containers[0].image")]),
        ({"containers": [{"image": "i"}]}, [(REQUIRED, "spec.containers[0].name")]),
        ({"containers": [container("A_")]}, [(INVALID, "spec.containers[0].name")]),
        ({"restartPolicy": "Maybe"}, [(UNSUPPORTED, "spec.restartPolicy")]),
        ({"dnsPolicy": "Maybe"}, [(UNSUPPORTED, "spec.dnsPolicy")]),
        ({"nodeSelector": {"a": "b c"}}, [(INVALID, "spec.nodeSelector")]),
        ({"tolerations": [{"key": "a", "operator": "Maybe"}]}, [(UNSUPPORTED, "spec.tolerations[0].operator")]),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, [(DUPLICATE, "spec.volumes[1].name")]),
        ({"activeDeadlineSeconds": 0}, [(INVALID, "spec.activeDeadlineSeconds")]),
    ],
    ids=str,
)
async def test_a_pod_that_cannot_be(api: Api, namespace: str, spec: Json, causes: list[tuple[str, str]]) -> None:
    reply = await api.create(PODS, pod("a", **spec), namespace)
    details = reply.refused(422, "Invalid")
    assert (details["name"], details["kind"]) == ("a", "Pod")
    assert reply.causes == causes


@pytest.mark.parametrize(
    ("more", "causes"),
    [
        (
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            [(INVALID, "spec.containers[0].resources.requests")],
        ),
        ({"resources": {"requests": {"cpu": "-1"}}}, [(INVALID, "spec.containers[0].resources.requests[cpu]")]),
        ({"ports": [{"containerPort": 70000}]}, [(INVALID, "spec.containers[0].ports[0].containerPort")]),
        ({"volumeMounts": [{"name": "no", "mountPath": "/x"}]}, [(NOT_FOUND, "spec.containers[0].volumeMounts[0].name")]),
        ({"imagePullPolicy": "Maybe"}, [(UNSUPPORTED, "spec.containers[0].imagePullPolicy")]),
        ({"env": [{"name": ""}]}, [(REQUIRED, "spec.containers[0].env[0].name")]),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_container_that_cannot_be(api: Api, namespace: str, more: Json, causes: list[tuple[str, str]]) -> None:
    reply = await api.create(PODS, pod("a", containers=[container(**more)]), namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == causes


@pytest.mark.parametrize("quantity", ["much", "1.5.5", "1 Gi", ""])
async def test_a_quantity_that_cannot_be_read_is_a_bad_request(api: Api, namespace: str, quantity: str) -> None:
    body = pod("a", containers=[container(resources={"requests": {"cpu": quantity}})])
    (await api.create(PODS, body, namespace)).refused(400, "BadRequest")


async def test_a_priority_class_that_is_not_there_is_forbidden(api: Api, namespace: str) -> None:
    reply = await api.create(PODS, pod("a", priorityClassName="none"), namespace)
    assert reply.refused(403, "Forbidden") == {"name": "a", "kind": "pods"}
    assert "no PriorityClass with name none was found" in reply.message


async def test_a_pod_may_change_its_images_and_little_else(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)

    def change(value: Any, path: str) -> Any:
        return api.patch(PODS, "a", [{"op": "add", "path": path, "value": value}], namespace, kind="json")

    assert (await change("app:2", "/spec/containers/0/image")).ok["metadata"]["generation"] == 2
    assert (await change(60, "/spec/activeDeadlineSeconds")).code == 200
    for value, path in (("other", "/spec/containers/0/name"), ("other", "/spec/nodeName"), ("Never", "/spec/restartPolicy")):
        reply = await change(value, path)
        reply.refused(422, "Invalid")
        assert reply.causes == [(FORBIDDEN, "spec")]
        assert "pod updates may not change fields other than `spec.containers[*].image`" in reply.message


async def test_what_is_immutable_stays(api: Api, namespace: str) -> None:
    for resource, change in ((CONFIG_MAPS, {"data": {"k": "other"}}), (SECRETS, {"data": {"k": "b3RoZXI="}})):
        await api.create(resource, {**config_map("a", {"k": "dg=="}), "immutable": True}, namespace)
        reply = await api.patch(resource, "a", change, namespace)
        reply.refused(422, "Invalid")
        assert reply.causes == [(FORBIDDEN, "data")]
        reply = await api.patch(resource, "a", {"immutable": False}, namespace)
        assert reply.causes == [(FORBIDDEN, "immutable")]
        assert (await api.patch(resource, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)).code == 200


async def test_some_fields_never_change(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    selector = {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}
    reply = await api.patch(DEPLOYMENTS, "a", selector, namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [(INVALID, "spec.selector")]
    assert "field is immutable" in reply.message
    await api.create(SECRETS, config_map("a"), namespace)
    assert (await api.patch(SECRETS, "a", {"type": "example.com/other"}, namespace)).causes == [(INVALID, "type")]
    await api.create(CONTROLLER_REVISIONS, {**config_map("a", {"x": 1}), "revision": 1}, namespace)
    assert (await api.patch(CONTROLLER_REVISIONS, "a", {"data": {"x": 2}}, namespace)).causes == [(INVALID, "data")]


SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
CASES: list[tuple[Resource, Json, set[tuple[str, str]]]] = [
    (CONFIG_MAPS, {"data": {"a b": "v"}}, {(INVALID, "data[a b]")}),
    (CONFIG_MAPS, {"data": {"a": "v"}, "binaryData": {"a": "eA=="}}, {(INVALID, "data[a]")}),
    (SECRETS, {"type": "kubernetes.io/tls"}, {(REQUIRED, "data[tls.crt]"), (REQUIRED, "data[tls.key]")}),
    (
        DEPLOYMENTS,
        {"spec": {}},
        {(REQUIRED, "spec.selector"), (INVALID, "spec.template.metadata.labels"), (REQUIRED, "spec.template.spec.containers")},
    ),
    (DEPLOYMENTS, {"spec": {**workload("a")["spec"], "replicas": -1}}, {(INVALID, "spec.replicas")}),
    (
        DEPLOYMENTS,
        {"spec": {**workload("a")["spec"], "selector": {"matchLabels": {"app": "b"}}}},
        {(INVALID, "spec.template.metadata.labels")},
    ),
    (BUDGETS, {"spec": {"minAvailable": 1, "maxUnavailable": 1}}, {(INVALID, "spec")}),
    (BUDGETS, {"spec": {"minAvailable": "half"}}, {(INVALID, "spec.minAvailable")}),
    (BUDGETS, {"spec": {"maxUnavailable": -1}}, {(INVALID, "spec.maxUnavailable")}),
    (CLAIMS, {"spec": {}}, {(REQUIRED, "spec.accessModes"), (REQUIRED, "spec.resources[storage]")}),
    (CLAIMS, {"spec": {**SIZE, "accessModes": ["Sometimes"]}}, {(UNSUPPORTED, "spec.accessModes")}),
    (LEASES, {"spec": {"leaseDurationSeconds": 0}}, {(INVALID, "spec.leaseDurationSeconds")}),
]


@pytest.mark.parametrize(("resource", "body", "causes"), CASES, ids=[f"{kind.kind} {min(causes)[1]}" for kind, _, causes in CASES])
async def test_other_objects_that_cannot_be(
    api: Api, namespace: str, resource: Resource, body: Json, causes: set[tuple[str, str]]
) -> None:
    reply = await api.create(resource, {"metadata": {"name": "a"}, **body}, namespace)
    assert reply.refused(422, "Invalid").get("group", "") == resource.group
    assert set(reply.causes) == causes


async def test_the_data_of_a_secret_is_base64(api: Api, namespace: str) -> None:
    (await api.create(SECRETS, {"metadata": {"name": "a"}, "data": {"k": "???"}}, namespace)).refused(400, "BadRequest")


async def test_an_event_is_about_its_own_namespace(api: Api, namespace: str) -> None:
    reply = await api.create(EVENTS, {"metadata": {"name": "a"}, "involvedObject": {"namespace": "other"}}, namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [(INVALID, "involvedObject.namespace")]


async def test_the_highest_priorities_are_reserved(api: Api, unique: Callable[..., str]) -> None:
    reply = await api.create(PRIORITY_CLASSES, {"metadata": {"name": unique()}, "value": 2_000_000_000})
    reply.refused(422, "Invalid")
    assert reply.causes == [(FORBIDDEN, "value")]


async def test_a_taint_has_a_known_effect(api: Api, unique: Callable[..., str]) -> None:
    reply = await api.create(NODES, {"metadata": {"name": unique()}, "spec": {"taints": [{"key": "a", "effect": "Maybe"}]}})
    reply.refused(422, "Invalid")
    assert [reason for reason, _ in reply.causes] == [UNSUPPORTED]
