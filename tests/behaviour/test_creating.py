"""What the API says when an object cannot be created, and the names that it makes."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import config_map, node
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, NODES


async def test_a_created_object_has_its_metadata_filled_in(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace)
    assert reply.code == 201
    metadata = reply.body["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("a", namespace)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert metadata["resourceVersion"].isdigit()
    assert "selfLink" not in metadata
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == reply.body


async def test_a_name_that_is_taken_is_a_conflict(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.create(CONFIG_MAPS, config_map("a"), namespace)
    assert reply.refused(409, "AlreadyExists") == {"name": "a", "kind": "configmaps"}
    assert reply.message == 'configmaps "a" already exists'


async def test_a_name_is_required(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, {"metadata": {}}, namespace)
    details = reply.refused(422, "Invalid")
    assert details["kind"] == "ConfigMap"
    assert "name" not in details
    assert reply.causes == [("FieldValueRequired", "metadata.name")]
    assert "name or generateName is required" in reply.message


@pytest.mark.parametrize("name", ["A_b", "a" * 254, "-a", "a..b"])
async def test_a_name_that_is_no_dns_subdomain_is_invalid(api: Api, namespace: str, name: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map(name), namespace)
    details = reply.refused(422, "Invalid")
    assert (details["name"], details["kind"]) == (name, "ConfigMap")
    assert reply.causes == [("FieldValueInvalid", "metadata.name")]
    assert reply.message.startswith(f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": ')


async def test_the_name_of_a_namespace_is_one_dns_label(api: Api) -> None:
    reply = await api.create(NAMESPACES, {"metadata": {"name": "a.b"}})
    assert reply.refused(422, "Invalid")["kind"] == "Namespace"
    assert reply.causes == [("FieldValueInvalid", "metadata.name")]


async def test_the_namespace_in_the_body_must_be_the_one_in_the_address(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", namespace="other"), namespace)
    reply.refused(400, "BadRequest")
    assert reply.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_a_namespace_on_an_object_that_has_none_is_dropped(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    assert "namespace" not in (await api.create(NODES, node(name, namespace="other"))).ok["metadata"]
    await api.delete(NODES, name)


async def test_the_name_in_the_body_must_be_the_one_in_the_address(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("b")}
    reply = await api.request("PUT", CONFIG_MAPS.path(namespace, "a"), body)
    reply.refused(400, "BadRequest")
    assert reply.message == "the name of the object (b) does not match the name on the URL (a)"


async def test_a_namespace_that_does_not_exist_is_not_found(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    reply = await api.create(CONFIG_MAPS, config_map("a"), name)
    assert reply.refused(404, "NotFound") == {"name": name, "kind": "namespaces"}
    assert (await api.list(CONFIG_MAPS, name)).items == []  # but reading there is no mistake


@pytest.mark.parametrize("wrong", [{"kind": "Secret"}, {"apiVersion": "v2"}, {"apiVersion": "apps/v1"}], ids=str)
async def test_the_kind_in_the_body_must_be_what_the_address_serves(api: Api, namespace: str, wrong: dict[str, Any]) -> None:
    (await api.create(CONFIG_MAPS, {**config_map("a"), **wrong}, namespace)).refused(400, "BadRequest")


async def test_a_built_in_kind_need_not_be_said(api: Api, namespace: str) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), config_map("a"))
    assert (reply.ok["kind"], reply.ok["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_new_object_cannot_have_a_version(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", resourceVersion="5"), namespace)
    reply.refused(500, "")
    assert reply.message == "resourceVersion should not be set on objects to be created"


async def test_a_generated_name_is_the_prefix_and_five_characters(api: Api, namespace: str) -> None:
    made = [(await api.create(CONFIG_MAPS, {"metadata": {"generateName": "made-"}}, namespace)).ok["metadata"] for _ in range(3)]
    assert all(re.fullmatch(r"made-[bcdfghjklmnpqrstvwxz2456789]{5}", one["name"]) for one in made), made
    assert len({one["name"] for one in made}) == 3
    assert {one["generateName"] for one in made} == {"made-"}


async def test_a_long_prefix_is_cut_so_that_the_name_is_a_label(api: Api, namespace: str) -> None:
    made = (await api.create(CONFIG_MAPS, {"metadata": {"generateName": "g" * 100}}, namespace)).ok["metadata"]
    assert re.fullmatch(r"g{58}[a-z0-9]{5}", made["name"])


async def test_a_name_wins_over_a_prefix(api: Api, namespace: str) -> None:
    assert (await api.create(CONFIG_MAPS, config_map("a", generateName="made-"), namespace)).ok["metadata"]["name"] == "a"


async def test_a_bad_prefix_is_invalid_twice(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "G_"}}, namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "metadata.generateName"), ("FieldValueInvalid", "metadata.name")]


@pytest.mark.parametrize("said", [{}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}], ids=["neither", "kind", "version"])
async def test_what_the_address_says_need_not_be_said_again(api: Api, namespace: str, said: Json) -> None:
    made = (await api.request("POST", CONFIG_MAPS.path(namespace), {**said, **config_map("a")})).ok
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("media_type", ["text/yaml", "application/x-yaml", "text/json", "application/cbor-seq"])
async def test_other_names_for_what_is_read_are_not_known(api: Api, namespace: str, media_type: str) -> None:
    reply = await api.request("POST", CONFIG_MAPS.path(namespace), config_map("a"), content_type=media_type)
    reply.refused(415, "UnsupportedMediaType")


WORDS = {
    "y": "true",
    "N": "false",
    "0o17": "15",
    "08": "8",
    "0x1F": "31",
    "1_0": "10",
    "1e3": "1000",
    "1.50": "1.5",
    "+.25": "0.25",
}


async def test_words_of_yaml_mean_what_they_mean_to_go(api: Api, namespace: str) -> None:
    """As keys, where whatever they mean is shown as text."""
    metadata = "{name: a, annotations: {at: 1:30, equals: =, day: 2026-01-01}}"
    text = "\n".join([f"metadata: {metadata}", "data:", *(f"  {word}: ''" for word in WORDS)])
    made = (await api.request("POST", CONFIG_MAPS.path(namespace), text.encode(), content_type="application/yaml")).ok
    assert sorted(made["data"]) == sorted(WORDS.values())
    assert made["metadata"]["annotations"] == {"at": "1:30", "equals": "=", "day": "2026-01-01"}
