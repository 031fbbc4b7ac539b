"""A scheduler says where a pod goes by a binding: once, and only while the pod may still be placed."""

from typing import Any

import pytest

from tests.behaviour.disruptions import bind, binding, condition_of, waiting_pod
from tests.behaviour.manifests import absent_node
from tests.engines.api import Api, Json
from tests.engines.resources import PODS

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def test_a_binding_places_the_pod(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    reply = await bind(api, namespace, "a")
    assert (reply.code, reply.body) == (201, SUCCESS)
    placed = (await api.get(PODS, "a", namespace)).ok
    assert placed["spec"]["nodeName"] == absent_node(namespace)
    scheduled = condition_of(placed, "PodScheduled")
    assert scheduled["status"] == "True"
    assert scheduled["lastTransitionTime"]
    assert placed["status"]["phase"] == "Pending"


async def test_its_annotations_and_labels_become_the_pods(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a", {"labels": {"mine": "1", "both": "old"}, "annotations": {"kept": "1"}})
    body = binding("a", absent_node(namespace), annotations={"x": "y"}, labels={"both": "new", "topology.kubernetes.io/zone": "z"})
    assert (await bind(api, namespace, "a", body)).code == 201
    metadata = (await api.get(PODS, "a", namespace)).ok["metadata"]
    assert metadata["annotations"] == {"kept": "1", "x": "y"}
    assert metadata["labels"] == {"mine": "1", "both": "new", "topology.kubernetes.io/zone": "z"}


async def test_being_placed_is_no_new_generation_and_nobodys_field(api: Api, namespace: str) -> None:
    before = (await waiting_pod(api, namespace, "a"))["metadata"]
    await bind(api, namespace, "a")
    after = (await api.get(PODS, "a", namespace)).ok["metadata"]
    assert int(after["resourceVersion"]) > int(before["resourceVersion"])
    assert (after["generation"], after["managedFields"]) == (before["generation"], before["managedFields"])


async def test_watchers_of_the_node_see_the_pod_arrive(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    async with api.watch(PODS, namespace, fieldSelector=f"spec.nodeName={absent_node(namespace)}") as watch:
        await bind(api, namespace, "a")
        assert (await watch.next()).brief == ("ADDED", "a")


async def test_a_pod_is_placed_once(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    await bind(api, namespace, "a")
    again = await bind(api, namespace, "a", binding("a", "elsewhere"))
    assert again.refused(409, "Conflict") == {"name": "a", "kind": "pods/binding"}
    assert (
        again.message
        == f'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "{absent_node(namespace)}"'
    )


async def test_a_pod_that_goes_is_not_placed(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a", {"finalizers": ["example.com/hold"]})
    await api.delete(PODS, "a", namespace)
    reply = await bind(api, namespace, "a")
    reply.refused(409, "Conflict")
    assert reply.message.endswith("pod a is being deleted, cannot be assigned to a host")
    await api.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace)


async def test_a_pod_behind_a_gate_is_not_placed(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a", schedulingGates=[{"name": "example.com/wait"}])
    reply = await bind(api, namespace, "a")
    reply.refused(409, "Conflict")
    assert reply.message.endswith("pod a has non-empty .spec.schedulingGates")


async def test_a_pod_that_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    assert (await bind(api, namespace, "absent")).refused(404, "NotFound") == {"name": "absent", "kind": "pods"}


async def test_a_binding_may_be_of_this_very_pod_alone(api: Api, namespace: str) -> None:
    created = (await waiting_pod(api, namespace, "a"))["metadata"]
    for wrong in ({"uid": "another"}, {"resourceVersion": "1"}):
        reply = await bind(api, namespace, "a", binding("a", absent_node(namespace), **wrong))
        assert reply.refused(409, "Conflict") == {"name": "a", "kind": "pods"}
        assert "Precondition failed" in reply.message
    assert (await bind(api, namespace, "a", binding("a", absent_node(namespace), uid=created["uid"]))).code == 201


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({}, "target.name: Required value"),
        ({"kind": "Minion", "name": "x"}, 'target.kind: Unsupported value: "Minion": supported values: "Node", "<empty>"'),
    ],
    ids=["no name", "not a node"],
)
async def test_the_target_is_a_node(api: Api, namespace: str, target: Json, message: str) -> None:
    await waiting_pod(api, namespace, "a")
    reply = await bind(api, namespace, "a", {**binding("a", absent_node(namespace)), "target": target})
    assert (reply.code, reply.message) == (500, message)


async def test_the_name_in_the_body_is_the_one_in_the_url(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    for body in (binding("b", absent_node(namespace)), {"apiVersion": "v1", "kind": "Binding", "target": {"name": "x"}}):
        reply = await bind(api, namespace, "a", body)
        reply.refused(400, "BadRequest")
        assert reply.message == "name in URL does not match name in Binding object"


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {}),
        (binding("a", "elsewhere", namespace="another"), {}),
        ({**binding("a", "elsewhere"), "bogus": 1}, {"fieldValidation": "Strict"}),
        ({**binding("a", "elsewhere"), "target": "node"}, {}),
    ],
    ids=["another kind", "another namespace", "an unknown field", "a wrong type"],
)
async def test_what_is_no_binding_is_refused(api: Api, namespace: str, body: Json, query: dict[str, Any]) -> None:
    await waiting_pod(api, namespace, "a")
    (await bind(api, namespace, "a", body, **query)).refused(400, "BadRequest")
    assert "nodeName" not in (await api.get(PODS, "a", namespace)).ok["spec"]


async def test_a_dry_run_places_nothing(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    assert (await bind(api, namespace, "a", dryRun="All")).body == SUCCESS
    assert "nodeName" not in (await api.get(PODS, "a", namespace)).ok["spec"]


async def test_bindings_have_an_older_address_too(api: Api, namespace: str) -> None:
    await waiting_pod(api, namespace, "a")
    path = f"/api/v1/namespaces/{namespace}/bindings"
    assert (await api.request("POST", path, binding("a", absent_node(namespace)))).body == SUCCESS
    (await api.request("POST", path, binding("a", absent_node(namespace)))).refused(409, "Conflict")
    (await api.request("POST", path, {"apiVersion": "v1", "kind": "Binding", "target": {"name": "x"}})).refused(400, "BadRequest")


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_they_can_only_be_posted(api: Api, namespace: str, subresource: str, method: str) -> None:
    await waiting_pod(api, namespace, "a")
    (await api.request(method, PODS.path(namespace, "a", subresource))).refused(405, "MethodNotAllowed")


async def test_there_is_nothing_to_read_of_bindings(api: Api, namespace: str) -> None:
    (await api.request("GET", f"/api/v1/namespaces/{namespace}/bindings")).refused(405, "MethodNotAllowed")
    (await api.request("GET", f"/api/v1/namespaces/{namespace}/bindings/a")).refused(404, "NotFound")
    (await api.request("GET", "/api/v1/bindings")).refused(404, "NotFound")


async def test_clients_find_them_in_discovery(api: Api) -> None:
    listed = {entry["name"]: entry for entry in (await api.request("GET", "/api/v1")).ok["resources"]}
    assert listed["bindings"] == {
        "name": "bindings",
        "singularName": "binding",
        "namespaced": True,
        "kind": "Binding",
        "verbs": ["create"],
    }
    own = {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding", "verbs": ["create"]}
    assert listed["pods/binding"] == own
    evictions = {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1"}
    assert listed["pods/eviction"] == {**own, **evictions}


async def test_clients_find_them_in_openapi(api: Api) -> None:
    paths = (await api.request("GET", "/openapi/v3/api/v1")).ok["paths"]
    pods = "/api/v1/namespaces/{namespace}/pods/{name}"
    kinds = {"group": "", "version": "v1", "kind": "Binding"}
    for path, kind in (
        ("/api/v1/namespaces/{namespace}/bindings", kinds),
        (f"{pods}/binding", kinds),
        (f"{pods}/eviction", {"group": "policy", "version": "v1", "kind": "Eviction"}),
    ):
        assert {method for method in paths[path] if method != "parameters"} == {"post"}
        assert paths[path]["post"]["x-kubernetes-group-version-kind"] == kind
    assert "/api/v1/bindings" not in paths
