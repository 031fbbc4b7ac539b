"""Whether a schema may stand in a CustomResourceDefinition: structural, complete, its defaults valid, its rules compilable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from herder.api import problems
from herder.api.builtin.structural import is_plain
from herder.api.problems import Problem
from herder.server.schema.check_defaults import check_defaults
from herder.server.schema.check_lists import check_list_keywords
from herder.server.schema.check_nested import check_nested
from herder.server.schema.check_rules import check_rules
from herder.server.schema.node import META_FIELDS, build
from herder.server.schema.patterns import PatternError, compile_pattern

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NOT_SUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NO_TYPE_NEEDED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", *_NOT_SUPPORTED)
KEYWORDS = frozenset(
    [
        "description",
        "type",
        "format",
        "title",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "enum",
        "maxProperties",
        "minProperties",
        "required",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "properties",
        "additionalProperties",
        "externalDocs",
        "example",
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
        "id",
        "$schema",
        "$ref",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
    ]
)
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def check_schema(openapi: dict[str, Any], path: str = "openAPIV3Schema") -> list[Problem]:
    """What keeps this schema out of a CRD. `path` is where it stands, for the problems' fields."""
    found: list[Problem] = []
    if openapi.get("nullable"):
        found.append(problems.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    _check(openapi, path, "root", found)
    check_nested(openapi, path, found, is_root=True)
    if found:
        return found
    root = build(openapi)
    check_defaults(root, path, found)
    if not found:
        check_rules(root, path, found)
    return found


def unknown_keywords(openapi: dict[str, Any], path: str = "openAPIV3Schema") -> list[str]:
    """Paths of keywords that no schema knows. Kubernetes drops them; strict field validation names them."""
    found = [f"{path}.{keyword}" for keyword in openapi if keyword not in KEYWORDS]
    for inner_path, inner in _below(openapi, path):
        found.extend(unknown_keywords(inner, inner_path))
    return found


def _below(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas directly inside of this one, each with its path."""
    for name, one in (schema.get("properties") or {}).items():
        if isinstance(one, dict):
            yield f"{path}.properties[{name}]", one
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), dict):
            yield f"{path}.{keyword}", schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, one in enumerate(schema.get(keyword) or ()):
            yield f"{path}.{keyword}[{index}]", one


def _check(schema: dict[str, Any], path: str, level: str, found: list[Problem], in_meta: bool = False) -> None:
    if level != "root" and is_plain(schema):
        return
    _check_keywords(schema, path, level, found, in_meta)
    _check_type(schema, path, level, found)
    _check_resource(schema, path, level, found)
    check_list_keywords(schema, path, found)
    if isinstance(schema.get("items"), dict):
        _check(schema["items"], f"{path}.items", "item", found, in_meta)
    if isinstance(schema.get("additionalProperties"), dict):
        _check(schema["additionalProperties"], f"{path}.additionalProperties", "field", found, in_meta)
    is_resource = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, one in (schema.get("properties") or {}).items():
        _check(one, f"{path}.properties[{name}]", "field", found, in_meta or (is_resource and name in META_FIELDS))


def _check_keywords(schema: dict[str, Any], path: str, level: str, found: list[Problem], in_meta: bool) -> None:
    for keyword in _NOT_SUPPORTED:
        if schema.get(keyword):
            found.append(problems.forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if isinstance(schema.get("items"), list):
        found.append(problems.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(problems.forbidden(f"{path}.uniqueItems", detail))
    more = schema.get("additionalProperties")
    if more is not None and level == "root":
        found.append(problems.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    if more is not None and more is not True and schema.get("properties"):
        found.append(problems.forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        found.append(problems.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    if in_meta and schema.get("x-kubernetes-embedded-resource"):
        found.append(problems.forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
    check_pattern(schema, path, found)


def check_pattern(schema: dict[str, Any], path: str, found: list[Problem]) -> None:
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            found.append(problems.invalid(f"{path}.pattern", pattern, detail))


def _check_type(schema: dict[str, Any], path: str, level: str, found: list[Problem]) -> None:
    kind = schema.get("type") or ""
    where = f"{path}.type"
    if kind and kind not in _TYPES:
        found.append(problems.not_supported(where, kind, [one for one in _TYPES if one != "null"]))
    if kind == "null":
        found.append(problems.forbidden(where, "type cannot be set to null, use nullable as an alternative"))
    if kind == "array" and schema.get("items") is None:
        found.append(problems.required(f"{path}.items", "must be specified"))
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        found.append(problems.invalid(where, kind, detail) if kind else problems.required(where, detail))
    elif not kind and not any(schema.get(keyword) for keyword in _NO_TYPE_NEEDED):
        found.append(problems.required(where, _MISSING_TYPE[level]))
    if level == "root" and kind and kind != "object":
        found.append(problems.invalid(where, kind, "must be object at the root"))
    if schema.get("x-kubernetes-int-or-string"):
        _check_int_or_string(schema, path, found)


def _check_int_or_string(schema: dict[str, Any], path: str, found: list[Problem]) -> None:
    for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(keyword):
            found.append(problems.invalid(f"{path}.{keyword}", True, "must be false if x-kubernetes-int-or-string is true"))


def _check_resource(schema: dict[str, Any], path: str, level: str, found: list[Problem]) -> None:
    """What a schema may say of a resource's own fields: the kind is a string, metadata's name may be narrowed, no more."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties = schema.get("properties") or {}
    if embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(problems.forbidden(f"{path}.additionalProperties", detail))
    if embedded and not properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
        detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        found.append(problems.required(f"{path}.properties", detail))
    if not embedded and level != "root":
        return
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            found.append(problems.invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string"))
    if "metadata" in properties:
        _check_metadata(properties["metadata"], f"{path}.properties[metadata]", level, found)
    if level == "root":
        for name in META_FIELDS:
            if "default" in properties.get(name, {}):
                found.append(problems.forbidden(f"{path}.properties[{name}].default", f"must not be set in top-level {name}"))


def _check_metadata(schema: dict[str, Any], path: str, level: str, found: list[Problem]) -> None:
    if schema.get("type") != "object":
        found.append(problems.invalid(f"{path}.type", schema.get("type", ""), "must be object"))
    said = {key for key, value in schema.items() if value} - {"type", "properties", "description", "default"}
    if level == "root" and (said or not set(schema.get("properties") or {}) <= {"name", "generateName"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(problems.forbidden(path, detail))
