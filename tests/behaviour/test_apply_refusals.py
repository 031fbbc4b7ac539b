"""Configurations that make no sense. Where Kubernetes says 500 for a mistake of the client's, the embedded engine says 400."""

from typing import Any

import pytest

from tests.behaviour.applying import apply, gadgets
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import CONFIG_MAPS, PODS, Resource

__all__ = ["gadgets"]
APPLY = "application/apply-patch+yaml"


@pytest.mark.parametrize("body", [{}, {"kind": "Secret"}], ids=["right", "of another kind"])
async def test_a_manager_must_be_named(api: Api, namespace: str, body: Json) -> None:
    reply = await apply(api, CONFIG_MAPS, "a", body, namespace, manager="")
    assert reply.refused(422, "Invalid")["kind"] == "PatchOptions"
    assert reply.causes == [("FieldValueRequired", "fieldManager")]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kind": "Secret"}, "/v1, Kind=Secret"),
        ({"apiVersion": "v2"}, "/v2, Kind=ConfigMap"),
        ({"apiVersion": "apps/v1", "kind": ""}, "apps/v1, Kind="),
    ],
)
async def test_the_kind_must_be_that_of_the_path(api: Api, namespace: str, wrong: Json, named: str) -> None:
    reply = await apply(api, CONFIG_MAPS, "a", wrong, namespace)
    reply.refused(400, "BadRequest")
    assert reply.message == f"invalid object type: {named}"


async def test_the_name_and_the_namespace_must_be_those_of_the_path(api: Api, namespace: str) -> None:
    for metadata in ({"name": "b"}, {"namespace": "elsewhere"}):
        (await apply(api, CONFIG_MAPS, "a", {"metadata": metadata}, namespace)).refused(400, "BadRequest")
    await apply(api, CONFIG_MAPS, "a", {}, namespace)
    for metadata in ({"name": "b"}, {"namespace": "elsewhere"}):
        (await apply(api, CONFIG_MAPS, "a", {"metadata": metadata}, namespace)).refused(400, "BadRequest")


@pytest.mark.parametrize("entries", [[], [{"manager": "x"}]])
async def test_managed_fields_are_not_for_the_client(api: Api, namespace: str, entries: list[Json]) -> None:
    reply = await apply(api, CONFIG_MAPS, "a", {"metadata": {"managedFields": entries}}, namespace)
    reply.refused(400, "BadRequest")
    assert reply.message == "metadata.managedFields must be nil"


@pytest.mark.parametrize("text", [b"{ a: [}", b"- a", b"hello", b"", b"a: &a [*a]", b"\x00"])
async def test_what_is_no_configuration_is_refused(api: Api, namespace: str, text: bytes) -> None:
    assert (await api.request("PATCH", CONFIG_MAPS.path(namespace, "a"), text, content_type=APPLY, fieldManager="me")).code == 400


def _said(reply: Reply) -> str:
    assert reply.code in (400, 500)
    return reply.message


@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict"])
async def test_an_unknown_field_is_refused_in_any_case(api: Api, namespace: str, mode: str) -> None:
    reply = await apply(api, CONFIG_MAPS, "a", {"dta": {"k": "v"}}, namespace, fieldValidation=mode)
    assert _said(reply).endswith("(/a; /v1, Kind=ConfigMap): .dta: field not declared in schema")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"containers": [{"name": "a", "imag": "x"}]}, '.spec.containers[name="a"].imag: field not declared in schema'),
        ({"containers": [{"name": "a", "image": 5}]}, '.spec.containers[name="a"].image: expected string, got '),
        ({"hostNetwork": "yes"}, ".spec.hostNetwork: expected boolean, got "),
        ({"containers": {"a": 1}}, ".spec.containers: expected list, got "),
        ({"securityContext": []}, ".spec.securityContext: expected map, got "),
        ({"containers": [{"name": "a"}, {"name": "a"}]}, '.spec.containers: duplicate entries for key [name="a"]'),
        (
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}]},
            '.spec.containers[name="a"].ports: duplicate entries for key [containerPort=1,protocol="TCP"]',
        ),
        ({"containers": [None]}, ".spec.containers: element 0: associative list with keys may not have a null element"),
    ],
)
async def test_what_cannot_be_merged_is_refused_with_its_place(api: Api, namespace: str, spec: Json, words: str) -> None:
    assert words in _said(await apply(api, PODS, "a", {"spec": spec}, namespace))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
        ({"size": "1"}, ".spec.size: expected numeric (int or float), got "),
        ({"parts": [{"name": 5}]}, '.spec.parts[kind="K",name=5].name: expected string, got '),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"tags": [{"a": 1}]}, ".spec.tags: element 0: "),
        ({"list": ["a", 5]}, ".spec.list[1]: expected string, got "),
        ({"whole": {"x": 1}}, ".spec.whole.x: expected string, got "),
    ],
)
async def test_the_same_of_a_custom_resource(api: Api, namespace: str, gadgets: Resource, spec: Json, words: str) -> None:
    assert words in _said(await apply(api, gadgets, "a", {"spec": spec}, namespace))


async def test_what_is_said_twice_is_refused_if_asked(api: Api, namespace: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: a\n  k: b\n"
    strict = await apply(api, CONFIG_MAPS, "a", text, namespace, fieldValidation="Strict")
    strict.refused(400, "BadRequest")
    assert strict.message.endswith('yaml: unmarshal errors:\n  line 7: key "k" already set in map')
    warned = await apply(api, CONFIG_MAPS, "a", text, namespace)
    assert (warned.code, warned.warnings) == (201, ['299 - "line 7: key \\"k\\" already set in map"'])
    json = b'{"apiVersion": "v1",\n"kind": "ConfigMap", "metadata": {"name": "a"},\n"data": {"k": "a", "k": "b"}}'
    assert (await apply(api, CONFIG_MAPS, "a", json, namespace)).warnings == ['299 - "line 3: key \\"k\\" already set in map"']
    assert (await apply(api, CONFIG_MAPS, "a", text, namespace, fieldValidation="Ignore")).warnings == []


async def test_rules_are_asked_once_it_is_merged(api: Api, namespace: str) -> None:
    reply = await apply(api, PODS, "a", {"spec": {"containers": []}}, namespace)
    assert reply.refused(422, "Invalid")["kind"] == "Pod"
    assert reply.causes == [("FieldValueRequired", "spec.containers")]


async def test_another_uid_is_refused(api: Api, namespace: str) -> None:
    absent = await apply(api, CONFIG_MAPS, "a", {"metadata": {"uid": "1"}}, namespace)
    absent.refused(409, "Conflict")
    assert "uid mismatch: the provided object specified uid 1, and no existing object was found" in absent.message
    await apply(api, CONFIG_MAPS, "a", {}, namespace)
    present = await apply(api, CONFIG_MAPS, "a", {"metadata": {"uid": "1"}}, namespace)
    assert ("FieldValueInvalid", "metadata.uid") in present.causes


async def test_a_missing_namespace_is_not_found(api: Api) -> None:
    assert (await apply(api, CONFIG_MAPS, "a", {}, "no-such-namespace")).refused(404, "NotFound")["kind"] == "namespaces"


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize(("kind", "patch"), [("merge", {}), ("strategic", {}), ("json", [])])
async def test_force_is_for_applying_alone(api: Api, namespace: str, kind: str, patch: Any, value: str) -> None:
    reply = await api.patch(CONFIG_MAPS, "a", patch, namespace, kind=kind, force=value)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueForbidden", "force")]
