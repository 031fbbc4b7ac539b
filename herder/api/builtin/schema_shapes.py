"""Whether a schema inside a CRD has the types that JSON schema keywords have, at every depth."""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = frozenset(
    (
        *("type", "format", "title", "description", "pattern", "$ref", "$schema", "id"),
        *("x-kubernetes-list-type", "x-kubernetes-map-type"),
    )
)
_YES_NO: Final = frozenset(
    (
        *("nullable", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "x-kubernetes-int-or-string"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
    )
)
_NUMBER: Final = frozenset(("minimum", "maximum", "multipleOf"))
_WHOLE: Final = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_TEXTS: Final = frozenset(("required", "x-kubernetes-list-map-keys"))
_SCHEMAS: Final = frozenset(("properties", "patternProperties", "definitions"))
_SCHEMA_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf"))
_DEEPEST: Final = 100


def schema_mismatch(schema: Any, path: str, depth: int = 0) -> str | None:
    """The first keyword whose value has the wrong type, as a sentence; None when all are right."""
    if depth > _DEEPEST:
        return f"{path}: a schema may not be nested more than {_DEEPEST} deep"
    if not isinstance(schema, dict):
        return f"json: cannot unmarshal a value that is not an object into field {path}"
    for name, value in schema.items():
        if value is None:
            continue
        found = _keyword_mismatch(name, value, f"{path}.{name}", depth)
        if found is not None:
            return found
    return None


def _keyword_mismatch(name: str, value: Any, path: str, depth: int) -> str | None:
    if name in _SCHEMAS:
        if not isinstance(value, dict):
            return f"json: cannot unmarshal a value that is not an object into field {path}"
        return _first(schema_mismatch(inner, f"{path}.{key}", depth + 1) for key, inner in value.items())
    if name in _SCHEMA_LISTS:
        if not isinstance(value, list):
            return f"json: cannot unmarshal a value that is not an array into field {path}"
        return _first(schema_mismatch(inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(value))
    if name in ("not", "items", "additionalProperties"):
        if (name == "items" and isinstance(value, list)) or (name == "additionalProperties" and isinstance(value, bool)):
            return None
        return schema_mismatch(value, path, depth + 1)
    return None if _right_type(name, value) else f"json: cannot unmarshal a value of another type into field {path}"


def _first(found: Any) -> str | None:
    return next((one for one in found if one is not None), None)


def _right_type(name: str, value: Any) -> bool:
    if name in _TEXT:
        return isinstance(value, str)
    if name in _YES_NO:
        return isinstance(value, bool)
    if name in _NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if name in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if name in _TEXTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if name == "enum":
        return isinstance(value, list)
    if name == "x-kubernetes-validations":
        return isinstance(value, list) and all(isinstance(one, dict) for one in value)
    return True
