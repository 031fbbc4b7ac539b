"""Fields that no schema knows, and fields said twice."""

import re

import pytest

from tests.behaviour.manifests import config_map, container, pod
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, PODS

MISTYPED = {**config_map("a", colour="red"), "dta": {"k": "v"}}
TWICE = b"""{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1", "x": "2"}},
             "immutable": false, "immutable": true}"""


def plain(texts: list[str]) -> list[str]:
    """Without the hint at the field that was probably meant, which the embedded engine adds."""
    return [re.sub(r" \(did you mean [^?]*\?\)", "", text) for text in texts]


async def test_strict_refuses_unknown_fields(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, MISTYPED, namespace, fieldValidation="Strict")
    reply.refused(400, "BadRequest")
    assert plain([reply.message])[0] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "metadata.colour", unknown field "dta"'
    )
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404


async def test_strict_says_where_the_field_is(api: Api, namespace: str) -> None:
    body = pod("a", containers=[container(), container("b", env=[{"name": "x", "valeu": "y"}])], nodeNam="n")
    reply = await api.create(PODS, body, namespace, fieldValidation="Strict")
    reply.refused(400, "BadRequest")
    assert 'unknown field "spec.containers[1].env[0].valeu"' in reply.message
    assert 'unknown field "spec.nodeNam"' in reply.message


async def test_strict_refuses_what_is_said_twice(api: Api, namespace: str) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), TWICE, fieldValidation="Strict")
    reply.refused(400, "BadRequest")
    assert reply.message.endswith('strict decoding error: duplicate field "metadata.labels.x", duplicate field "immutable"')


@pytest.mark.parametrize("params", [{"fieldValidation": "Warn"}, {}], ids=["asked", "by default"])
async def test_warn_drops_unknown_fields_with_a_warning(api: Api, namespace: str, params: dict[str, str]) -> None:
    reply = await api.create(CONFIG_MAPS, MISTYPED, namespace, **params)
    assert reply.code == 201
    assert "dta" not in reply.body
    assert sorted(plain(reply.warnings)) == ['299 - "unknown field \\"dta\\""', '299 - "unknown field \\"metadata.colour\\""']


async def test_warn_takes_the_last_of_what_is_said_twice(api: Api, namespace: str) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), TWICE, fieldValidation="Warn")
    assert reply.ok["metadata"]["labels"] == {"x": "2"}
    assert reply.ok["immutable"] is True
    assert reply.warnings == ['299 - "duplicate field \\"metadata.labels.x\\""', '299 - "duplicate field \\"immutable\\""']


YAML_TWICE = b"""apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  k: 'a'
  k: 'b'
  1: 'x'
  '1': 'y'
  k: 'c'
immutable: true
"immutable": false
dta: {}
"""
IN_LINES = [
    'line 6: key "k" already set in map',
    'line 9: key "k" already set in map',
    'line 11: key "immutable" already set in map',
]


async def test_what_yaml_says_twice_is_told_by_its_line(api: Api, namespace: str) -> None:
    path, kind = CONFIG_MAPS.path(namespace), "application/yaml"
    strict = await api.request("POST", path, YAML_TWICE, content_type=kind, fieldValidation="Strict")
    strict.refused(400, "BadRequest")
    listed = "\n  ".join(["strict decoding error: yaml: unmarshal errors:", *IN_LINES])
    assert plain([strict.message])[0].endswith(f'{listed}, unknown field "dta"')
    warned = await api.request("POST", path, YAML_TWICE, content_type=kind)
    # A number and its text are two keys to YAML and one to JSON: which of the two counts, Kubernetes leaves to chance.
    data = warned.ok["data"]
    assert (data["1"] in ("x", "y"), data, warned.ok["immutable"]) == (True, {"k": "c", "1": data["1"]}, False)
    escaped = [line.replace('"', '\\"') for line in IN_LINES]
    assert plain(warned.warnings) == [*(f'299 - "{line}"' for line in escaped), '299 - "unknown field \\"dta\\""']
    silent = await api.request("POST", path, YAML_TWICE, content_type=kind, fieldValidation="Ignore", dryRun="All")
    assert (silent.code, silent.warnings) == (409, [])


async def test_ignore_is_silent(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, MISTYPED, namespace, fieldValidation="Ignore")
    assert reply.code == 201
    assert "dta" not in reply.body
    assert reply.warnings == []


async def test_a_field_whose_name_cannot_be_printed_is_spelled_out(api: Api, namespace: str) -> None:
    """And the answer comes at all: a header cannot hold such a character."""
    field = r'"x\u0001\u0085\n\"y\u20ac": "1"'
    sent = f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, {field}}}'.encode()
    strict = await api.request("POST", CONFIG_MAPS.path(namespace), sent, fieldValidation="Strict")
    assert strict.message.endswith(r'strict decoding error: unknown field "x\x01\u0085\n\"y€"')
    warning = r'299 - "unknown field \"x\\x01\\u0085\\n\\\"y€\""'
    made = await api.request("POST", CONFIG_MAPS.path(namespace), sent)
    assert (made.code, made.warnings) == (201, [warning])
    patched = await api.patch(CONFIG_MAPS, "a", f"{{{field}}}".encode(), namespace)
    assert (patched.code, patched.warnings) == (200, [warning])
    twice = sent.replace(field.encode(), f'"data": {{{field}, {field}}}'.encode())
    refused = await api.request("POST", CONFIG_MAPS.path(namespace), twice)
    assert (refused.code, refused.warnings) == (422, [r'299 - "duplicate field \"data.x\\x01\\u0085\\n\\\"y€\""'])


async def test_names_of_fields_are_told_apart_by_case(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, {**config_map("a"), "Data": {"k": "v"}}, namespace)
    assert "data" not in reply.ok
    assert plain(reply.warnings) == ['299 - "unknown field \\"Data\\""']


async def test_an_update_is_validated_too(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    (await api.update(CONFIG_MAPS, MISTYPED, namespace, fieldValidation="Strict")).refused(400, "BadRequest")
    assert len((await api.update(CONFIG_MAPS, MISTYPED, namespace)).warnings) == 2


async def test_a_patch_with_unknown_fields_is_invalid_or_warned_about(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    strict = await api.patch(CONFIG_MAPS, "a", {"dta": {"k": "v"}}, namespace, fieldValidation="Strict")
    strict.refused(422, "Invalid")
    assert strict.causes == [("FieldValueInvalid", "patch")]
    assert 'strict decoding error: unknown field "dta"' in strict.message
    warned = await api.patch(CONFIG_MAPS, "a", {"dta": {"k": "v"}}, namespace)
    assert warned.ok.keys() == {"kind", "apiVersion", "metadata"}
    assert plain(warned.warnings) == ['299 - "unknown field \\"dta\\""']
    json = await api.patch(
        CONFIG_MAPS, "a", [{"op": "add", "path": "/dta", "value": 1}], namespace, kind="json", fieldValidation="Strict"
    )
    json.refused(422, "Invalid")


async def test_another_kind_of_validation_is_invalid(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a"), namespace, fieldValidation="Lenient")
    assert reply.refused(422, "Invalid")["kind"] == "CreateOptions"
    assert reply.causes == [("FieldValueNotSupported", "fieldValidation")]
