"""The OpenAPI v2 document in JSON: everything of the v3 documents that v2 has words for, in one.

kubectl asks for protobuf and gets a document without kinds (informing.py); this one is for tools that read schemas and paths from
`/openapi/v2`, and for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herder.server.openapi_paths import SCHEMAS

DEFINITIONS = "#/definitions/"
# What v2 cannot say. A schema without them accepts more, never less.
_UNKNOWN = frozenset(("nullable", "oneOf", "anyOf", "not"))
METHODS = ("get", "put", "post", "delete", "patch")

Json = dict[str, Any]


def as_version_2(documents: Iterable[Json]) -> Json:
    paths: Json = {}
    definitions: Json = {}
    for document in documents:
        paths.update((path, _path(operations)) for path, operations in document["paths"].items())
        for name, schema in document["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = schema_of(schema)
    return {
        "swagger": "2.0",
        "info": {"title": "Herder", "version": "v1"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def schema_of(schema: Json) -> Json:
    """`properties` are fields by their names, which are not words of a schema."""
    shown: Json = {}
    for word, value in schema.items():
        if word == "$ref":
            shown[word] = value.replace(SCHEMAS, DEFINITIONS)
        elif word == "properties":
            shown[word] = {name: schema_of(field) for name, field in value.items()}
        elif word in ("items", "additionalProperties") and isinstance(value, dict):
            shown[word] = schema_of(value)
        elif word == "allOf":
            # Of v3's only use, one reference with a description beside it.
            shown |= schema_of(value[0]) if len(value) == 1 else {}
        elif word not in _UNKNOWN:
            shown[word] = value
    if any(choice.get("type") == "string" for choice in schema.get("oneOf", ())):
        shown.setdefault("type", "string")  # a quantity, or a number or a share: each can be written as text
    return shown


def _path(operations: Json) -> Json:
    shown: Json = {method: _operation(operations[method]) for method in METHODS if method in operations}
    if "parameters" in operations:
        shown["parameters"] = [_parameter(one) for one in operations["parameters"]]
    return shown


def _operation(operation: Json) -> Json:
    taken: Json = operation.get("requestBody", {}).get("content", {})
    given: Json = operation["responses"]["200"].get("content", {})
    parameters = [_parameter(one) for one in operation.get("parameters", ())]
    if taken:
        parameters.append(_body(operation["requestBody"]))
    kept = {key: value for key, value in operation.items() if key not in ("requestBody", "parameters", "responses")}
    return {
        **kept,
        "consumes": list(taken) or ["*/*"],
        "produces": list(given),
        "parameters": parameters,
        "responses": {code: _response(response) for code, response in operation["responses"].items()},
    }


def _parameter(parameter: Json) -> Json:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _body(sent: Json) -> Json:
    return {"name": "body", "in": "body", "required": sent.get("required", False), "schema": _first_schema(sent)}


def _response(response: Json) -> Json:
    schema = {"schema": _first_schema(response)} if response.get("content") else {}
    return {"description": response["description"], **schema}


def _first_schema(part: Json) -> Json:
    """The same for every media type."""
    return schema_of(next(iter(part["content"].values()))["schema"])
