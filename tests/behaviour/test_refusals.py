"""Requests that no kind of object could satisfy, and what is said to them."""

import pytest

from tests.behaviour.manifests import config_map, container, pod
from tests.engines.api import PATCH_TYPES, Api
from tests.engines.resources import CONFIG_MAPS, PODS

MEGABYTE = "x" * 1_000_000


@pytest.mark.parametrize("body", [b'{"kind":', b"", b"[]", b'"text"'], ids=["cut short", "empty", "a list", "a string"])
async def test_a_body_that_is_no_json_object_is_a_bad_request(api: Api, namespace: str, body: bytes) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), body)
    reply.refused(400, "BadRequest")
    assert "details" not in reply.body


@pytest.mark.parametrize("wrong", [{"data": {"k": 1}}, {"metadata": {"name": 5}}, {"metadata": []}], ids=str)
async def test_a_value_of_the_wrong_type_is_a_bad_request(api: Api, namespace: str, wrong: dict[str, object]) -> None:
    reply = await api.create(CONFIG_MAPS, {**config_map("a"), **wrong}, namespace)
    reply.refused(400, "BadRequest")
    assert reply.message.startswith('ConfigMap in version "v1" cannot be handled as a ConfigMap: ')


async def test_a_body_in_an_unknown_format_is_unsupported(api: Api, namespace: str) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), b"hello", content_type="text/plain")
    reply.refused(415, "UnsupportedMediaType")
    assert "application/json, application/yaml" in reply.message


async def test_an_answer_in_an_unknown_format_is_not_acceptable(api: Api, namespace: str) -> None:
    (await api.request("GET", CONFIG_MAPS.path(namespace), accept="text/plain")).refused(406, "NotAcceptable")


async def test_yaml_is_read_and_written(api: Api, namespace: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), text, content_type="application/yaml")
    assert reply.ok["data"] == {"k": "v"}
    written = await api.get(CONFIG_MAPS, "a", namespace, accept="application/yaml")
    assert b"data:\n  k: v\n" in written.raw
    assert written.headers["Content-Type"] == "application/yaml"


async def test_any_format_will_do_when_none_is_asked_for(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.get(CONFIG_MAPS, "a", namespace, accept="*/*")
    assert (reply.headers["Content-Type"], reply.ok["kind"]) == ("application/json", "ConfigMap")


@pytest.mark.parametrize("path", ["/nothing", "/apis/none.example.com/v1/things"])
async def test_an_unknown_path_is_not_found(api: Api, path: str) -> None:
    assert (await api.request("GET", path)).code == 404


@pytest.mark.parametrize("path", ["/api/v1/things", "/api/v1/namespaces/default/configmaps/a/status", "/apis/apps/v1/things/a"])
async def test_an_unknown_resource_is_not_found(api: Api, path: str) -> None:
    reply = await api.request("GET", path)
    reply.refused(404, "NotFound")
    # Clients in Go look into it without asking whether it is there.
    assert reply.body["details"] == {}
    assert reply.message == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
    ],
)
async def test_a_verb_that_a_path_does_not_have_is_not_allowed(api: Api, method: str, path: str) -> None:
    reply = await api.request(method, path, {})
    reply.refused(405, "MethodNotAllowed")
    assert reply.body["details"] == {}


async def test_a_request_of_more_than_three_megabytes_is_too_large(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", {"k": MEGABYTE * 4}), namespace)
    reply.refused(413, "RequestEntityTooLarge")
    assert reply.message == "Request entity too large: limit is 3145728"


async def test_the_data_of_a_config_map_is_at_most_one_mebibyte(api: Api, namespace: str) -> None:
    assert (await api.create(CONFIG_MAPS, config_map("fits", {"k": MEGABYTE}), namespace)).code == 201
    reply = await api.create(CONFIG_MAPS, config_map("a", {"k": MEGABYTE, "l": MEGABYTE[:60_000]}), namespace)
    reply.refused(422, "Invalid")
    assert [reason for reason, _ in reply.causes] == ["FieldValueTooLong"]
    assert "may not be more than 1048576 bytes" in reply.message


async def test_annotations_are_at_most_256_kibibytes_together(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", annotations={"k": MEGABYTE[:262_144]}), namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueTooLong", "metadata.annotations")]


async def test_an_object_too_large_to_store_is_refused_and_not_half_there(api: Api, namespace: str) -> None:
    body = pod("a", containers=[container(args=[MEGABYTE, MEGABYTE])])
    reply = await api.create(PODS, body, namespace)
    assert reply.code in (413, 500), reply.body  # which of the two is the store's affair
    assert reply.body["status"] == "Failure"
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_what_is_not_utf8_is_replaced(api: Api, namespace: str) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"a\xff"}}'
    assert (await api.request("POST", CONFIG_MAPS.path(namespace), body)).ok["data"] == {"k": "a\ufffd"}
    patched = await api.patch(CONFIG_MAPS, "a", b'{"data":{"k":"\x80b"}}', namespace)
    assert patched.ok["data"] == {"k": "\ufffdb"}


async def test_half_of_a_surrogate_pair_is_replaced(api: Api, namespace: str) -> None:
    text = rb"\ud83d\ude00 \ud800 \udc00\uD83Dx \\ud800"
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"' + text + b'"}}'
    expected = {"k": "\U0001f600 \ufffd \ufffd\ufffdx \\ud800"}
    assert (await api.request("POST", CONFIG_MAPS.path(namespace), body)).ok["data"] == expected
    doubled = b'{"data":{"k":"' + text + b'","\\ud800":"1","\\ud800":null}}'
    patched = await api.patch(CONFIG_MAPS, "a", doubled, namespace)
    assert (patched.ok["data"], len(patched.warnings)) == (expected, 1)


async def test_a_body_that_is_no_utf_8_is_refused(api: Api, namespace: str) -> None:
    broken = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"\xce("}'
    for method, kind in (("POST", "application/json"), ("PATCH", PATCH_TYPES["merge"]), ("PATCH", PATCH_TYPES["apply"])):
        path = CONFIG_MAPS.path(namespace, "" if method == "POST" else "a")
        assert (await api.request(method, path, broken, content_type=kind, fieldManager="me")).code in (400, 404)
