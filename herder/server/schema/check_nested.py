"""What may stand under allOf, anyOf, oneOf and not: limits on values, nothing that shapes them.

The shape of an object is said once, outside of these; otherwise pruning and defaulting would depend on the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from herder.api import problems
from herder.api.builtin.structural import is_plain
from herder.api.problems import Problem
from herder.server.schema.patterns import PatternError, compile_pattern

_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# keyword: what it must be to be structural
_FORBIDDEN = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}


def is_int_or_string_any_of(schema: dict[str, Any]) -> bool:
    """The one place where types may stand in a combination: spelling out what int-or-string means."""
    return bool(schema.get("x-kubernetes-int-or-string")) and (
        schema.get("anyOf") == _INT_OR_STRING or ((schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING)
    )


def check_nested(schema: dict[str, Any], path: str, found: list[Problem], is_root: bool = False) -> None:
    """Looks at every combination anywhere in the schema."""
    if is_plain(schema):
        return
    spelled = is_int_or_string_any_of(schema)
    for keyword in _COMBINATIONS:
        if spelled and keyword == "anyOf" and schema.get("anyOf") == _INT_OR_STRING:
            continue
        for index, one in enumerate(schema.get(keyword) or ()):
            skip_any_of = spelled and keyword == "allOf" and index == 0
            _check_choice(one, f"{path}.{keyword}[{index}]", found, skip_any_of)
    if isinstance(schema.get("not"), dict):
        _check_choice(schema["not"], f"{path}.not", found)
    if is_root:
        _check_complete(schema, schema, path, path, found)
    for name, one in (schema.get("properties") or {}).items():
        check_nested(one, f"{path}.properties[{name}]", found)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            check_nested(schema[keyword], f"{path}.{keyword}", found)


def _inside(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The choices of a combination, each with its path."""
    for keyword in _COMBINATIONS:
        for index, one in enumerate(schema.get(keyword) or ()):
            yield f"{path}.{keyword}[{index}]", one
    if isinstance(schema.get("not"), dict):
        yield f"{path}.not", schema["not"]


def _check_choice(choice: dict[str, Any], path: str, found: list[Problem], skip_any_of: bool = False) -> None:
    _check_forbidden(choice, path, found)
    for name, one in (choice.get("properties") or {}).items():
        if name == "metadata":
            found.append(problems.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
        _check_choice(one, f"{path}.properties[{name}]", found)
    if isinstance(choice.get("items"), dict):
        _check_choice(choice["items"], f"{path}.items", found)
    for inner_path, one in _inside(choice, path):
        if not (skip_any_of and ".anyOf[" in inner_path.removeprefix(path)):
            _check_choice(one, inner_path, found)


def _check_complete(choice: dict[str, Any], shape: Any, shape_path: str, path: str, found: list[Problem]) -> None:
    """What a combination at the root names must be there outside of it too. `shape`: what is said there of the same value."""
    if not isinstance(shape, dict):
        found.append(problems.required(shape_path, f"because it is defined in {path}"))
        return
    for inner_path, one in _inside(choice, path):
        _check_complete(one, shape, shape_path, inner_path, found)
    if choice is shape:
        return
    for name, one in (choice.get("properties") or {}).items():
        inner = (shape.get("properties") or {}).get(name)
        _check_complete(one, inner, f"{shape_path}.properties[{name}]", f"{path}.properties[{name}]", found)
    if isinstance(choice.get("items"), dict):
        _check_complete(choice["items"], shape.get("items"), f"{shape_path}.items", f"{path}.items", found)


def _check_forbidden(choice: dict[str, Any], path: str, found: list[Problem]) -> None:
    for keyword, must_be in _FORBIDDEN.items():
        value = choice.get(keyword)
        if value or (must_be == "undefined" and value is not None):
            found.append(problems.forbidden(f"{path}.{keyword}", f"must be {must_be} to be structural"))
    pattern = choice.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            found.append(problems.invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}"))
