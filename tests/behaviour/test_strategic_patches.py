"""Strategic merge patch: lists of built-in kinds merged by their keys, and the directives in the patch."""

from typing import Any

import pytest

from tests.behaviour.manifests import absent_node, container, pod, workload
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS


def _workload() -> Json:
    """A workload whose pods have something in every list."""
    first = container(
        "a",
        ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
    )
    body = workload("a")
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    body["spec"]["template"]["spec"] |= {
        "containers": [first, container("b")],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }
    return body


async def _patched(api: Api, namespace: str, patch: Json, **params: Any) -> Reply:
    await api.create(REPLICA_SETS, _workload(), namespace)
    return await api.patch(REPLICA_SETS, "a", patch, namespace, kind="strategic", **params)


def _in_pods(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": spec}}}


def _pods(reply: Reply) -> Json:
    return reply.ok["spec"]["template"]["spec"]


def _names(reply: Reply, field: str = "containers") -> list[str]:
    return [item["name"] for item in _pods(reply)[field]]


async def test_items_are_merged_by_their_key_and_new_ones_added(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, _in_pods(containers=[{"name": "b", "image": "i:2"}, {"name": "c", "image": "i:3"}]))
    found = {one["name"]: one["image"] for one in _pods(reply)["containers"]}
    assert found == {"a": "registry.example.com/app:1", "b": "i:2", "c": "i:3"}
    assert _names(reply) == ["a", "b", "c"]


async def test_items_within_items_are_merged_too(api: Api, namespace: str) -> None:
    env = [{"name": "B", "value": None, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]
    ports = [{"containerPort": 81, "name": "x"}, {"containerPort": 82}]
    reply = await _patched(api, namespace, _in_pods(containers=[{"name": "a", "ports": ports, "env": env}]))
    found = _pods(reply)["containers"][0]
    assert found["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "protocol": "UDP", "name": "x"},
        {"containerPort": 82, "protocol": "TCP"},
    ]
    assert [sorted(one) for one in found["env"]] == [["name", "value"], ["name", "valueFrom"]]


async def test_an_item_is_deleted(api: Api, namespace: str) -> None:
    assert _names(await _patched(api, namespace, _in_pods(containers=[{"name": "a", "$patch": "delete"}]))) == ["b"]


async def test_a_list_is_replaced(api: Api, namespace: str) -> None:
    patch = _in_pods(containers=[{"$patch": "replace"}, {"name": "z", "image": "i"}])
    assert _names(await _patched(api, namespace, patch)) == ["z"]


async def test_a_list_without_a_strategy_is_replaced(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, _in_pods(tolerations=[{"key": "b", "operator": "Exists"}]))
    assert _pods(reply)["tolerations"] == [{"key": "b", "operator": "Exists"}]


async def test_null_removes_a_field(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, {"metadata": {"labels": {"x": "y", "z": None}}, **_in_pods(tolerations=None)})
    assert "tolerations" not in _pods(reply)
    assert reply.ok["metadata"]["labels"] == {"x": "y"}


async def test_a_map_is_replaced_or_emptied(api: Api, namespace: str) -> None:
    metadata = {"metadata": {"annotations": {"a": "1", "b": "1"}, "labels": {"a": "1"}}}
    await _patched(api, namespace, metadata)
    patch = {"metadata": {"annotations": {"$patch": "replace", "c": "1"}, "labels": {"$patch": "delete"}}}
    after = (await api.patch(REPLICA_SETS, "a", patch, namespace, kind="strategic")).ok
    assert after["metadata"]["annotations"] == {"c": "1"}
    assert "labels" not in after["metadata"]


@pytest.mark.parametrize(
    ("order", "items", "expected"),
    [
        (["b", "a"], [], ["b", "a"]),
        (["b", "a"], [{"name": "a", "image": "i"}], ["b", "a"]),
        (["n", "b", "a"], [{"name": "n", "image": "i"}], ["n", "b", "a"]),
        (["c", "b"], [{"name": "c", "image": "i"}], ["c", "a", "b"]),
    ],
)
async def test_the_order_of_items_is_set(api: Api, namespace: str, order: list[str], items: Any, expected: list[str]) -> None:
    patch = {"$setElementOrder/containers": [{"name": name} for name in order], **({"containers": items} if items else {})}
    assert _names(await _patched(api, namespace, _in_pods(**patch))) == expected


async def test_keys_that_are_not_retained_go(api: Api, namespace: str) -> None:
    patch = _in_pods(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}])
    assert sorted(_pods(await _patched(api, namespace, patch))["volumes"][0]) == ["hostPath", "name"]


async def test_a_list_of_plain_values_is_added_to(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}})
    assert reply.ok["metadata"]["finalizers"] == ["example.com/c", "example.com/a", "example.com/b"]


async def test_values_are_deleted_from_a_list_of_plain_ones(api: Api, namespace: str) -> None:
    patch = {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/zz"]}
    assert (await _patched(api, namespace, {"metadata": patch})).ok["metadata"]["finalizers"] == ["example.com/b"]


async def test_values_are_deleted_added_and_ordered_at_once(api: Api, namespace: str) -> None:
    patch = {
        "$deleteFromPrimitiveList/finalizers": ["example.com/a"],
        "$setElementOrder/finalizers": ["example.com/d", "example.com/b"],
        "finalizers": ["example.com/d"],
    }
    reply = await _patched(api, namespace, {"metadata": patch})
    assert reply.ok["metadata"]["finalizers"] == ["example.com/d", "example.com/b"]


async def test_a_selector_of_a_budget_is_replaced_as_a_whole(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    await api.create(BUDGETS, body, namespace)
    patch = {"spec": {"selector": {"matchLabels": {"c": "d"}}}}
    after = (await api.patch(BUDGETS, "a", patch, namespace, kind="strategic")).ok
    assert after["spec"]["selector"] == {"matchLabels": {"c": "d"}}


async def test_conditions_of_a_status_are_merged_by_their_type(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    for kind in ("Ready", "Other"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        await api.patch(PODS, "a", patch, namespace, "status", kind="strategic")
    found = (await api.get(PODS, "a", namespace)).ok["status"]["conditions"]
    assert {one["type"] for one in found} == {"Ready", "Other"}


async def test_the_manager_of_a_strategic_patch_is_recorded(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, _in_pods(containers=[{"name": "b", "image": "i:2"}]), fieldManager="painter")
    entries = {one["manager"]: one["fieldsV1"] for one in reply.ok["metadata"]["managedFields"]}
    containers = {'k:{"name":"b"}': {"f:image": {}}}
    assert entries["painter"] == {"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}}


async def test_a_scale_is_patched(api: Api, namespace: str) -> None:
    await api.create(STATEFUL_SETS, workload("a", serviceName="a"), namespace)
    reply = await api.patch(STATEFUL_SETS, "a", {"spec": {"replicas": 0}}, namespace, "scale", kind="strategic")
    assert reply.ok["kind"] == "Scale"


async def test_an_unknown_field_is_told(api: Api, namespace: str) -> None:
    reply = await _patched(api, namespace, _in_pods(foo=1))
    assert (reply.code, len(reply.warnings)) == (200, 1)
    strict = await api.patch(REPLICA_SETS, "a", _in_pods(foo=1), namespace, kind="strategic", fieldValidation="Strict")
    strict.refused(422, "Invalid")
    assert 'unknown field "spec.template.spec.foo"' in strict.message


@pytest.mark.parametrize("kind", ["strategic", "merge"])
async def test_what_is_said_twice_is_refused_if_asked(api: Api, namespace: str, kind: str) -> None:
    await api.create(REPLICA_SETS, _workload(), namespace)
    patch = b'{"metadata":{"labels":{"a":"1","a":"2"}}}'
    reply = await api.patch(REPLICA_SETS, "a", patch, namespace, kind=kind, fieldValidation="Strict")
    reply.refused(422, "Invalid")
    assert 'duplicate field "metadata.labels.a"' in reply.message


@pytest.mark.parametrize("patch", [b"[]", b"{", b'"x"'])
async def test_what_is_no_object_is_refused(api: Api, namespace: str, patch: bytes) -> None:
    await api.create(REPLICA_SETS, _workload(), namespace)
    (await api.patch(REPLICA_SETS, "a", patch, namespace, kind="strategic")).refused(400, "BadRequest")


@pytest.mark.parametrize(
    "patch",
    [
        _in_pods(volumes=[{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}}]),
        _in_pods(volumes=[{"name": "v", "$retainKeys": "name"}]),
        _in_pods(**{"$setElementOrder": [{"name": "x"}]}),
    ],
)
async def test_directives_in_a_wrong_form_are_refused(api: Api, namespace: str, patch: Json) -> None:
    (await _patched(api, namespace, patch)).refused(400, "BadRequest")


@pytest.mark.parametrize(
    "patch",
    [
        _in_pods(containers=[{"image": "z"}]),
        _in_pods(containers=[{"$patch": "delete"}]),
        _in_pods(containers=[{"$patch": "bogus", "name": "a"}]),
        _in_pods(containers=["x"]),
        _in_pods(**{"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "q", "image": "i"}]}),
        _in_pods(**{"$setElementOrder/containers": {"name": "a"}}),
        {"spec": {"template": {"metadata": {"labels": {"$patch": "bogus"}}}}},
    ],
)
async def test_patches_that_make_no_sense_change_nothing(api: Api, namespace: str, patch: Json) -> None:
    """Kubernetes answers 500 to these mistakes, the embedded engine 400."""
    assert (await _patched(api, namespace, patch)).code in (400, 500)
    assert [one["name"] for one in (await api.get(REPLICA_SETS, "a", namespace)).ok["spec"]["template"]["spec"]["containers"]] == [
        "a",
        "b",
    ]


async def test_the_name_cannot_be_patched(api: Api, namespace: str) -> None:
    (await _patched(api, namespace, {"metadata": {"name": "b"}})).refused(400, "BadRequest")


async def test_what_is_not_there_cannot_be_patched(api: Api, namespace: str) -> None:
    (await api.patch(REPLICA_SETS, "absent", {}, namespace, kind="strategic")).refused(404, "NotFound")
