"""JSON patches and merge patches."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import config_map, container, pod
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, NODES, PODS

START = {"a": "1", "b": "2"}


@pytest.fixture
async def patch(api: Api, namespace: str) -> Callable[..., Any]:
    """Patches a config map that is there from the start."""
    await api.create(CONFIG_MAPS, config_map("it", START, labels={"x": "y"}), namespace)
    return lambda body, kind="merge", **params: api.patch(CONFIG_MAPS, "it", body, namespace, kind=kind, **params)


async def test_a_merge_patch_sets_and_removes(patch: Callable[..., Any]) -> None:
    reply = await patch({"data": {"a": "new", "b": None, "c": "3", "absent": None}})
    assert reply.code == 200
    assert reply.ok["data"] == {"a": "new", "c": "3"}
    assert reply.ok["metadata"]["labels"] == {"x": "y"}


async def test_a_merge_patch_removes_a_whole_map(patch: Callable[..., Any]) -> None:
    reply = await patch({"data": None, "metadata": {"labels": None}})
    assert "data" not in reply.ok
    assert "labels" not in reply.ok["metadata"]


async def test_a_merge_patch_replaces_lists_as_a_whole(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/a", "example.com/b"]), namespace)
    reply = await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": ["example.com/b"]}}, namespace)
    assert reply.ok["metadata"]["finalizers"] == ["example.com/b"]
    await api.create(PODS, pod("a"), namespace)
    refused = await api.patch(PODS, "a", {"spec": {"containers": [container("other")]}}, namespace)
    refused.refused(422, "Invalid")  # the whole list is another one, and a pod keeps its containers
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace)


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "add", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
        ([{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
        (
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "5"}],
            {"a": "5", "b": "2"},
        ),
        ([{"op": "replace", "path": "/data", "value": {"z": "0"}}], {"z": "0"}),
        ([], START),
    ],
    ids=["add", "add over", "replace", "remove", "move", "copy", "test", "replace map", "nothing"],
)
async def test_a_json_patch_does_its_operations_in_order(patch: Callable[..., Any], operations: list[Any], data: Any) -> None:
    reply = await patch(operations, "json")
    assert reply.ok["data"] == data


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/data/a", "value": "2"}],
        [{"op": "test", "path": "/data/absent", "value": "2"}],
        [{"op": "remove", "path": "/data/absent"}],
        [{"op": "add", "path": "/binaryData/c", "value": "3"}],
        [{"op": "replace", "path": "/metadata/finalizers/0", "value": "x"}],
        [{"op": "move", "from": "/data/absent", "path": "/data/c"}],
        [{"op": "frobnicate", "path": "/data/a"}],
        [{"op": "replace", "path": "/data/a", "value": "9"}, {"op": "test", "path": "/data/a", "value": "1"}],
    ],
    ids=lambda operations: " then ".join(f"{one['op']} {one['path']}" for one in operations),
)
async def test_a_json_patch_that_cannot_be_done_is_invalid_and_does_nothing(
    api: Api, namespace: str, patch: Callable[..., Any], operations: list[Any]
) -> None:
    reply = await patch(operations, "json")
    assert reply.refused(422, "Invalid") == {}
    assert (await api.get(CONFIG_MAPS, "it", namespace)).ok["data"] == START


async def test_a_slash_in_a_key_is_escaped_in_a_path(patch: Callable[..., Any]) -> None:
    reply = await patch([{"op": "add", "path": "/metadata/labels/example.com~1x", "value": "y"}], "json")
    assert reply.ok["metadata"]["labels"] == {"x": "y", "example.com/x": "y"}


async def test_replacing_a_key_that_a_map_does_not_have_adds_it(patch: Callable[..., Any]) -> None:
    reply = await patch([{"op": "replace", "path": "/data/c", "value": "3"}], "json")
    assert reply.ok["data"] == {**START, "c": "3"}


async def test_a_json_patch_inserts_into_lists_and_appends(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/b"]), namespace)
    operations = [
        {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/a"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"},
    ]
    reply = await api.patch(CONFIG_MAPS, "a", operations, namespace, kind="json")
    assert reply.ok["metadata"]["finalizers"] == ["example.com/a", "example.com/b", "example.com/c"]
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"[", "json"), ({"op": "add"}, "json"), (b"{", "merge"), ([], "merge"), (b"hello", "merge")],
    ids=["json cut short", "json no list", "merge cut short", "merge a list", "merge no json"],
)
async def test_a_patch_that_cannot_be_read_is_a_bad_request(patch: Callable[..., Any], body: Any, kind: str) -> None:
    reply = await patch(body, kind)
    reply.refused(400, "BadRequest")
    assert reply.message.startswith("error decoding patch: ")


async def test_a_patch_of_ten_thousand_operations_is_the_largest(patch: Callable[..., Any]) -> None:
    operation = {"op": "test", "path": "/data/a", "value": "1"}
    reply = await patch([operation] * 10_001, "json")
    reply.refused(413, "RequestEntityTooLarge")


async def test_a_patch_in_no_patch_format_is_unsupported(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.request("PATCH", CONFIG_MAPS.path(namespace, "a"), {"data": {}}, content_type="application/json")
    assert reply.refused(415, "UnsupportedMediaType") == {}


async def test_a_patch_to_a_wrong_type_is_invalid(patch: Callable[..., Any]) -> None:
    reply = await patch({"data": {"a": 1}})
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "patch")]


@pytest.mark.parametrize("change", [{"kind": "Secret"}, {"apiVersion": "v2"}], ids=str)
async def test_a_patch_cannot_make_another_kind_of_it(patch: Callable[..., Any], change: Any) -> None:
    reply = await patch(change)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "patch")]


@pytest.mark.parametrize("change", [{"name": "other"}, {"namespace": "other"}], ids=str)
async def test_a_patch_cannot_rename(patch: Callable[..., Any], change: Any) -> None:
    (await patch({"metadata": change})).refused(400, "BadRequest")


@pytest.mark.parametrize("kind", ["merge", "json"])
async def test_a_patch_creates_nothing(api: Api, namespace: str, kind: str) -> None:
    reply = await api.patch(CONFIG_MAPS, "absent", [] if kind == "json" else {}, namespace, kind=kind)
    assert reply.refused(404, "NotFound") == {"name": "absent", "kind": "configmaps"}


async def test_what_a_patch_makes_is_validated(patch: Callable[..., Any]) -> None:
    reply = await patch({"data": {"no/slashes": "x"}})
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "data[no/slashes]")]


async def test_a_cluster_wide_object_is_patched_the_same_way(api: Api, unique: Callable[..., str]) -> None:
    name = unique("node")
    await api.create(NODES, {"metadata": {"name": name}})
    assert (await api.patch(NODES, name, {"spec": {"unschedulable": True}})).ok["spec"]["unschedulable"] is True
    await api.delete(NODES, name)


async def test_a_patch_may_leave_out_the_namespace_and_not_the_name(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    moved = await api.patch(CONFIG_MAPS, "a", {"metadata": {"namespace": None}}, namespace)
    assert moved.ok["metadata"]["namespace"] == namespace
    for patch in ({"metadata": None}, {"metadata": {"name": None}}):
        nameless = await api.patch(CONFIG_MAPS, "a", patch, namespace)
        nameless.refused(400, "BadRequest")
        assert nameless.message.endswith("name must be provided")
    pathless = await api.patch(CONFIG_MAPS, "a", [{"op": "add", "path": "data", "value": {}}], namespace, kind="json")
    pathless.refused(422, "Invalid")
