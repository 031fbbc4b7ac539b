"""When several things are wrong at once, the first in the order of admission is what the client is told (docs/admission.md)."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.behaviour.manifests import config_map, pod
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, Resource
from tests.engines.waiting import eventually

HOLD = "example.com/hold"
NOWHERE = "no-such-namespace"
BAD_NAME = {"metadata": {"name": "Not_A_Name"}}
BAD_KEY = {"metadata": {"name": "have"}, "data": {"not a key": "v"}}
UNKNOWN = {"bogus": 1}
NO_CLASS: Json = {"priorityClassName": "no-such-class"}
STRICT = {"fieldValidation": "Strict"}
BAD_QUERY = {"dryRun": "Some"}
BAD_VERSION = {"metadata": {"name": "a", "resourceVersion": "4"}}
MERGE = "application/merge-patch+json"


def told(reply: Reply) -> tuple[int, str]:
    return reply.code, reply.body.get("reason", "")


@pytest.fixture
async def going(api: Api, unique: Callable[..., str]) -> AsyncIterator[str]:
    """A namespace that is being deleted, and held by a secret."""
    name = unique()
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(SECRETS, config_map("held", finalizers=[HOLD]), name)
    await api.delete(NAMESPACES, name)

    async def closed() -> bool:
        return (await api.create(SECRETS, config_map("late"), name, dryRun="All")).code == 403

    await eventually(closed)
    yield name
    await api.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, name)


# --- where the object should go ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "body", "query", "expected"),
    [
        (CONFIG_MAPS, BAD_NAME, {}, (404, "NotFound")),
        (CONFIG_MAPS, {"metadata": {}}, {}, (404, "NotFound")),
        (CONFIG_MAPS, BAD_VERSION, {}, (404, "NotFound")),
        (PODS, pod("p", containers=[]), {}, (404, "NotFound")),
        (PODS, pod("p", **NO_CLASS), {}, (404, "NotFound")),
        (CONFIG_MAPS, {**config_map("a"), **UNKNOWN}, STRICT, (400, "BadRequest")),
        (CONFIG_MAPS, {"metadata": {"name": "a"}, "data": [1]}, {}, (400, "BadRequest")),
        (CONFIG_MAPS, {"kind": "Secret", "metadata": {"name": "a"}}, {}, (400, "BadRequest")),
        (CONFIG_MAPS, config_map("a", namespace="another"), {}, (400, "BadRequest")),
        (CONFIG_MAPS, config_map("a"), BAD_QUERY, (422, "Invalid")),
    ],
    ids=[
        *("name", "no name", "resourceVersion", "containers", "priority class"),
        *("unknown field", "type", "kind", "another namespace", "query"),
    ],
)
async def test_with_a_missing_namespace(
    api: Api, resource: Resource, body: Json, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert told(await api.create(resource, body, NOWHERE, **query)) == expected


async def test_with_a_namespace_that_is_going(api: Api, going: str) -> None:
    for resource, body in (
        (CONFIG_MAPS, BAD_NAME),
        (CONFIG_MAPS, BAD_VERSION),
        (SECRETS, config_map("held")),
        (PODS, pod("p", **NO_CLASS)),
    ):
        reply = await api.create(resource, body, going)
        assert told(reply) == (403, "Forbidden")
        assert reply.causes == [("NamespaceTerminating", "metadata.namespace")]
    unnamed = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "some-"}}, going)
    assert unnamed.refused(403, "Forbidden")["name"] == "some-"
    unknown = await api.create(CONFIG_MAPS, {**config_map("a"), **UNKNOWN}, going, **STRICT)
    assert told(unknown) == (400, "BadRequest")


# --- the object itself ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "query", "expected"),
    [
        (BAD_KEY, {}, (422, "Invalid")),
        ({**BAD_KEY, **UNKNOWN}, STRICT, (400, "BadRequest")),
        ({"metadata": {"name": "have", "resourceVersion": "4"}}, {}, (500, "")),
        ({**BAD_KEY, "metadata": {"name": "have", "resourceVersion": "4"}}, {}, (422, "Invalid")),
        (config_map("have"), {"dryRun": "All"}, (409, "AlreadyExists")),
    ],
    ids=["invalid", "unknown field", "resourceVersion", "resourceVersion and invalid", "dry run"],
)
async def test_with_a_name_that_is_taken(
    api: Api, namespace: str, body: Json, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    await api.create(CONFIG_MAPS, config_map("have"), namespace)
    assert told(await api.create(CONFIG_MAPS, body, namespace, **query)) == expected


async def test_a_name_that_is_taken_by_what_is_going_says_so(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("have", finalizers=[HOLD]), namespace)
    await api.delete(CONFIG_MAPS, "have", namespace)
    reply = await api.create(CONFIG_MAPS, config_map("have"), namespace)
    reply.refused(409, "AlreadyExists")
    assert reply.message == 'object is being deleted: configmaps "have" already exists'
    await api.patch(CONFIG_MAPS, "have", {"metadata": {"finalizers": None}}, namespace)


@pytest.mark.parametrize("spec", [{"containers": []}, {}], ids=["invalid", "taken"])
async def test_mutation_comes_before_validation_and_storage(api: Api, namespace: str, spec: dict[str, Any]) -> None:
    await api.create(PODS, pod("p", schedulerName="nobody"), namespace)
    reply = await api.create(PODS, pod("p", **NO_CLASS, **spec), namespace)
    reply.refused(403, "Forbidden")
    assert reply.message == 'pods "p" is forbidden: no PriorityClass with name no-such-class was found'


async def test_types_are_told_before_unknown_fields(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, {**config_map("a"), "data": [1], **UNKNOWN}, namespace, **STRICT)
    reply.refused(400, "BadRequest")
    assert "bogus" not in reply.message


async def test_custom_kinds_are_asked_in_the_same_order(api: Api, namespace: str, widgets: Resource) -> None:
    wrong = {"metadata": {"name": "a"}, "spec": {"size": "not a number"}}
    assert told(await api.create(widgets, wrong, NOWHERE)) == (404, "NotFound")
    assert told(await api.create(widgets, {**wrong, **UNKNOWN}, NOWHERE, **STRICT)) == (400, "BadRequest")
    assert (await api.create(widgets, {"metadata": {"name": "a"}, "spec": {"size": 1}}, namespace)).code == 201
    assert told(await api.create(widgets, wrong, namespace)) == (422, "Invalid")


# --- the request ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "accept", "query", "expected"),
    [
        (b"{", "text/html", "text/html", BAD_QUERY, (406, "NotAcceptable")),
        (b"{", "text/html", "application/json", BAD_QUERY, (415, "UnsupportedMediaType")),
        (b"{", "application/json", "application/json", BAD_QUERY, (422, "Invalid")),
        (b"{", "application/json", "application/json", {}, (400, "BadRequest")),
    ],
    ids=["accept", "content type", "query", "body"],
)
async def test_a_request_is_read_from_the_outside_in(
    api: Api, body: bytes, content_type: str, accept: str, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    path = CONFIG_MAPS.path(NOWHERE)
    assert told(await api.request("POST", path, body, content_type=content_type, accept=accept, **query)) == expected


async def test_the_query_is_judged_as_a_whole(api: Api, namespace: str) -> None:
    query = {"dryRun": "Some", "fieldValidation": "Perhaps", "fieldManager": "\x01"}
    reply = await api.create(CONFIG_MAPS, config_map("a"), namespace, **query)
    reply.refused(422, "Invalid")
    assert [field for _, field in reply.causes] == ["fieldManager", "dryRun", "fieldValidation"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_is_done_when_the_answer_could_not_be_read(api: Api, namespace: str, method: str) -> None:
    await api.create(CONFIG_MAPS, config_map("have", {"a": "b"}), namespace)
    name = "new" if method == "POST" else "have"
    path = CONFIG_MAPS.path(namespace, "" if method == "POST" else name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name, {"a": "c"})}
    kind = MERGE if method == "PATCH" else "application/json"
    reply = await api.request(method, path, None if method == "DELETE" else body, content_type=kind, accept="text/html")
    assert told(reply) == (406, "NotAcceptable")
    assert (await api.get(CONFIG_MAPS, "new", namespace)).code == 404
    assert (await api.get(CONFIG_MAPS, "have", namespace)).ok["data"] == {"a": "b"}


# --- changes ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "more", "query", "expected"),
    [
        ({"name": "absent"}, BAD_KEY["data"], {}, (404, "NotFound")),
        ({"name": "have", "resourceVersion": "1"}, BAD_KEY["data"], {}, (409, "Conflict")),
        ({"name": "have", "uid": "another"}, BAD_KEY["data"], {}, (409, "Conflict")),
        ({"name": "have"}, BAD_KEY["data"], {}, (422, "Invalid")),
        ({"name": "absent"}, {}, BAD_QUERY, (422, "Invalid")),
    ],
    ids=["missing", "stale", "another uid", "only invalid", "query"],
)
async def test_an_update_is_first_of_what_is_there(
    api: Api, namespace: str, metadata: Json, more: Json, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    await api.create(CONFIG_MAPS, config_map("have"), namespace)
    assert told(await api.update(CONFIG_MAPS, {"metadata": metadata, "data": more}, namespace, **query)) == expected


async def test_an_update_with_unknown_fields_is_not_even_compared(api: Api, namespace: str) -> None:
    stale = {"metadata": {"name": "absent", "resourceVersion": "1"}, **UNKNOWN}
    assert told(await api.update(CONFIG_MAPS, stale, namespace, **STRICT)) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("name", "patch", "content_type", "query", "expected"),
    [
        ("absent", b"{", "text/plain", BAD_QUERY, (415, "UnsupportedMediaType")),
        ("absent", b"{", MERGE, BAD_QUERY, (422, "Invalid")),
        ("absent", b"{", MERGE, {}, (404, "NotFound")),
        ("have", b"{", MERGE, {}, (400, "BadRequest")),
        ("have", b'{"metadata":{"resourceVersion":"1"},"data":{"not a key":"v"}}', MERGE, {}, (409, "Conflict")),
        ("have", b'{"bogus":1,"data":{"not a key":"v"}}', MERGE, STRICT, (422, "Invalid")),
    ],
    ids=["content type", "query", "missing", "patch", "stale", "unknown field"],
)
async def test_a_patch_is_read_once_there_is_something_to_patch(
    api: Api, namespace: str, name: str, patch: bytes, content_type: str, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    await api.create(CONFIG_MAPS, config_map("have"), namespace)
    reply = await api.request("PATCH", CONFIG_MAPS.path(namespace, name), patch, content_type=content_type, **query)
    assert told(reply) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"{", (400, "BadRequest")),
        ({"propagationPolicy": "Never"}, (422, "Invalid")),
        ({"preconditions": {"uid": "x"}}, (404, "NotFound")),
    ],
    ids=["body", "options", "preconditions"],
)
async def test_a_deletion_is_read_before_it_is_looked_for(
    api: Api, namespace: str, options: Any, expected: tuple[int, str]
) -> None:
    assert told(await api.request("DELETE", CONFIG_MAPS.path(namespace, "absent"), options)) == expected
