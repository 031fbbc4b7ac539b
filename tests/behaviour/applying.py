"""What the tests of server-side apply share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.behaviour.crds import STRING, definition, install, version
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import CRDS, Resource

NUMBER: Json = {"type": "integer"}
GADGET_SPEC: Json = {
    "type": "object",
    "properties": {
        "size": NUMBER,
        "colour": {"type": "string", "default": "red"},
        "map": {"type": "object", "additionalProperties": STRING},
        "whole": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        "inner": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "kind"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": STRING, "kind": {"type": "string", "default": "K"}, "weight": NUMBER, "note": STRING},
            },
        },
        "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": STRING},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.fixture(scope="module")
async def gadgets(api: Api) -> AsyncIterator[Resource]:
    """A kind with every form of list and map."""
    body = definition("apply.example.com", [version(spec=GADGET_SPEC, subresources={"status": {}})], kind="Gadget")
    yield await install(api, body)
    await api.delete(CRDS, body["metadata"]["name"])


async def apply(
    api: Api,
    resource: Resource,
    name: str,
    config: Any,
    namespace: str = "",
    subresource: str = "",
    manager: str = "me",
    **params: Any,
) -> Reply:
    """Applies `config`, which need not repeat its kind and name."""
    if isinstance(config, dict):
        said: Json = config
        metadata = {"name": name, **said.get("metadata", {})}
        config = {"apiVersion": resource.api_version, "kind": resource.kind, **said, "metadata": metadata}
    query = {"fieldManager": manager, **params} if manager else params
    return await api.patch(resource, name, config, namespace, subresource, kind="apply", **query)


def entry(found: Json, manager: str, operation: str = "Apply", subresource: str = "") -> Json:
    entries: list[Json] = found["metadata"].get("managedFields", [])
    wanted = (manager, operation, subresource)
    return next((one for one in entries if (one["manager"], one["operation"], one.get("subresource", "")) == wanted), {})


def owned(found: Json, manager: str, operation: str = "Apply", subresource: str = "") -> Json:
    return entry(found, manager, operation, subresource).get("fieldsV1", {})


def conflicts(reply: Reply) -> list[tuple[str, str]]:
    """Who and where, of an apply that must have been refused for its conflicts."""
    causes = reply.refused(409, "Conflict")["causes"]
    assert {cause["reason"] for cause in causes} == {"FieldManagerConflict"}
    return sorted((cause["message"], cause["field"]) for cause in causes)
