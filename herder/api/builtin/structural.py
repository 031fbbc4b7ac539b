"""Whether the schema of a CRD is structural: every field has a type, said in one place, so that pruning and defaulting can work."""

from __future__ import annotations

import re
from typing import Any, Final

from herder.api.builtin.semantics import Document, Problems
from herder.api.problems import forbidden, invalid, not_supported, required

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_FORBIDDEN: Final = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "patternProperties": "patternProperties is not supported",
    "additionalItems": "additionalItems is not supported",
    "id": "id is not supported",
}
_ONLY_OUTSIDE: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_KEEP_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_ANY_OF: Final = [{"type": "integer"}, {"type": "string"}]

ROOT, FIELD, ITEM = "root", "field", "item"
# Keywords that are right beside each of these types, and need no other.
_SCALARS: Final = frozenset(["boolean", "integer", "number", "string"])
_ABOUT_SCALARS: Final = frozenset(
    ["description", "example", "format", "maxLength", "maximum", "minLength", "minimum", "title", "type"]
)
_NO_TYPE: Final = {
    ROOT: "must not be empty at the root",
    FIELD: "must not be empty for specified object fields",
    ITEM: "must not be empty for specified array items",
}


def check_schema(schema: Document, field: str, out: Problems) -> None:
    """The whole schema of one version."""
    _check(schema, field, ROOT, out)
    if schema.get("additionalProperties"):
        out.append(forbidden(f"{field}.additionalProperties", "must not be used at the root"))
    if schema.get("nullable"):
        out.append(forbidden(f"{field}.nullable", "nullable cannot be true at the root"))
    _check_standard_fields(schema.get("properties") or {}, f"{field}.properties", out)
    for name in (*_JUNCTORS, "not"):
        for part, here in _parts(schema, name, field):
            _check_defined(part, schema, field, here, out)


def _check_standard_fields(properties: Document, field: str, out: Problems) -> None:
    """Every object has apiVersion, kind and metadata; a schema may only narrow down the name."""
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            out.append(invalid(f"{field}[{name}].type", properties[name].get("type", ""), "must be string"))
    meta = properties.get("metadata")
    if meta is None:
        return
    if meta.get("type") != "object":
        out.append(invalid(f"{field}[metadata].type", meta.get("type", ""), "must be object"))
    if not meta.keys() <= {"type", "properties", "default"} or not (meta.get("properties") or {}).keys() <= {
        "name",
        "generateName",
    }:
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        out.append(forbidden(f"{field}[metadata]", words))


def _parts(schema: Document, name: str, field: str) -> list[tuple[Document, str]]:
    if name == "not":
        return [(schema["not"], f"{field}.not")] if isinstance(schema.get("not"), dict) else []
    return [(part, f"{field}.{name}[{index}]") for index, part in enumerate(schema.get(name) or ())]


def _check_defined(part: Document, outside: Document, there: str, here: str, out: Problems) -> None:
    """What a part of allOf and the like narrows down must be defined outside of it."""
    known: Document = outside.get("properties") or {}
    for name, child in (part.get("properties") or {}).items():
        there_too, here_too = f"{there}.properties[{name}]", f"{here}.properties[{name}]"
        if name not in known:
            out.append(required(there_too, f"because it is defined in {here_too}"))
        else:
            _check_defined(child, known[name], there_too, here_too, out)


def is_plain(schema: Document) -> bool:
    """Nothing is in it, and none of its keywords can be wrong where it is: most of a schema is such, and is not looked into."""
    return schema.get("type") in _SCALARS and schema.keys() <= _ABOUT_SCALARS


def _check(schema: Document, field: str, level: str, out: Problems) -> None:
    if level != ROOT and is_plain(schema):
        return
    if not schema.get("$ref"):
        _check_type(schema, field, level, out)
    _check_extensions(schema, field, out)
    for name, words in _FORBIDDEN.items():
        if schema.get(name):
            out.append(forbidden(f"{field}.{name}", words))
    if schema.get("uniqueItems"):
        out.append(
            forbidden(f"{field}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
        )
    _check_pattern(schema, field, out)
    _check_children(schema, field, out)
    _check_junctors(schema, field, out)


def _check_type(schema: Document, field: str, level: str, out: Problems) -> None:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        out.append(not_supported(f"{field}.type", kind, _TYPES))
    if schema.get(_EMBEDDED) and kind != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        out.append(invalid(f"{field}.type", kind, words) if kind else required(f"{field}.type", words))
    elif not kind and not schema.get(_INT_OR_STRING) and (level == ROOT or not schema.get(_KEEP_UNKNOWN)):
        out.append(required(f"{field}.type", _NO_TYPE[level]))
    elif level == ROOT and kind != "object":
        out.append(invalid(f"{field}.type", kind, "must be object at the root"))


def _check_extensions(schema: Document, field: str, out: Problems) -> None:
    if schema.get(_KEEP_UNKNOWN) is False:
        out.append(invalid(f"{field}.{_KEEP_UNKNOWN}", False, "must be true or undefined"))
    if schema.get(_INT_OR_STRING):
        for name in (_KEEP_UNKNOWN, _EMBEDDED):
            if schema.get(name):
                out.append(invalid(f"{field}.{name}", True, "must be false if x-kubernetes-int-or-string is true"))
    if schema.get(_EMBEDDED) and not schema.get("properties") and not schema.get(_KEEP_UNKNOWN):
        words = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        out.append(required(f"{field}.properties", words))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        _demand_type(schema, "object", f"{field}.type", "must be object if x-kubernetes-map-type is specified", out)
        if map_type not in _MAP_TYPES:
            out.append(not_supported(f"{field}.x-kubernetes-map-type", map_type, _MAP_TYPES))
    _check_list_type(schema, field, out)


def _check_list_type(schema: Document, field: str, out: Problems) -> None:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if list_type is not None:
        _demand_type(schema, "array", f"{field}.type", "must be array if x-kubernetes-list-type is specified", out)
        if list_type not in _LIST_TYPES:
            out.append(not_supported(f"{field}.x-kubernetes-list-type", list_type, _LIST_TYPES))
    if list_type == "map":
        _check_map_keys(schema, keys, field, out)
    elif keys:
        here, words = f"{field}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        out.append(required(here, words) if list_type is None else invalid(here, list_type, words))


def _demand_type(schema: Document, wanted: str, field: str, words: str, out: Problems) -> None:
    kind = schema.get("type") or ""
    if kind != wanted:
        out.append(invalid(field, kind, words) if kind else required(field, words))


def _check_map_keys(schema: Document, keys: Any, field: str, out: Problems) -> None:
    if not keys:
        out.append(required(f"{field}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map"))
    item = schema.get("items")
    if not isinstance(item, dict):
        out.append(required(f"{field}.items", "must have a schema if x-kubernetes-list-type is map"))
        return
    if item.get("type") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        out.append(invalid(f"{field}.items.type", item.get("type", ""), words))
    needed = set(item.get("required") or ())
    properties: Document = item.get("properties") or {}
    for key in keys:
        if key not in properties:
            if item.get("type") == "object":
                out.append(invalid(f"{field}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties"))
        elif properties[key].get("default") is None and key not in needed:
            words = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            out.append(required(f"{field}.items.properties[{key}].default", words))


def _check_pattern(schema: Document, field: str, out: Problems) -> None:
    pattern = schema.get("pattern")
    if not pattern:
        return
    try:
        re.compile(pattern)
    except re.error as problem:
        out.append(invalid(f"{field}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}"))


def _check_children(schema: Document, field: str, out: Problems) -> None:
    properties: Document = schema.get("properties") or {}
    for name, child in properties.items():
        _check(child, f"{field}.properties[{name}]", FIELD, out)
    more = schema.get("additionalProperties")
    if properties and (more is False or isinstance(more, dict)):
        out.append(forbidden(f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive"))
    if isinstance(more, dict):
        _check(more, f"{field}.additionalProperties", FIELD, out)
    items = schema.get("items")
    if isinstance(items, dict):
        _check(items, f"{field}.items", ITEM, out)
    elif isinstance(items, list):
        out.append(forbidden(f"{field}.items", "items must be a schema object and not an array"))
    elif schema.get("type") == "array":
        out.append(required(f"{field}.items", "must be specified"))


def _check_junctors(schema: Document, field: str, out: Problems) -> None:
    """Parts of allOf, anyOf, oneOf and not only narrow down: types and extensions stand outside of them."""
    for name in _JUNCTORS:
        for index, part in enumerate(schema.get(name) or ()):
            if name == "anyOf" and schema.get(_INT_OR_STRING) and part in _ANY_OF:
                continue
            _check_narrowing(part, f"{field}.{name}[{index}]", out)
    if isinstance(schema.get("not"), dict):
        _check_narrowing(schema["not"], f"{field}.not", out)


def _check_narrowing(part: Document, field: str, out: Problems) -> None:
    for name, words in _ONLY_OUTSIDE.items():
        if part.get(name):
            out.append(forbidden(f"{field}.{name}", words))
    for name, child in (part.get("properties") or {}).items():
        _check_narrowing(child, f"{field}.properties[{name}]", out)
    for name in _JUNCTORS:
        for index, inner in enumerate(part.get(name) or ()):
            _check_narrowing(inner, f"{field}.{name}[{index}]", out)
