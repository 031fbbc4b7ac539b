"""A quick yes or no about values whose types are known to be right: only the branches of a schema that limit values are visited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.server.schema.formats import string_format
from herder.server.schema.node import Node
from herder.server.schema.values import check_value, integer_range

Fits = Callable[[Any], bool]
# An object, and what it was before (an empty one, where it is new).
Changed = Callable[[dict[str, Any], dict[str, Any]], bool]
_NOTHING: dict[str, Any] = {}
_LIMITS = (
    "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not",
)  # fmt: skip


def compile_quick(root: Node) -> Changed:
    """True: nothing is wrong with the values. False: the exact walk decides. Fields that are the very same as before are not looked
    at: most writes reach the status alone, and what was let in stays."""
    known: dict[int, Fits | None] = {}
    own, inside = _own(root), _object(root, known)

    def fits(value: dict[str, Any], old: dict[str, Any]) -> bool:
        if own is not None and not own(value):
            return False
        return inside is None or inside(value, old)

    return fits


def _compile(node: Node, known: dict[int, Fits | None]) -> Fits | None:
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = None
    known[id(node)] = made = _make(node, known)
    return made


def _make(node: Node, known: dict[int, Fits | None]) -> Fits | None:
    own = _own(node)
    if node.type == "array" and node.items is not None:
        return _both(own, _each_item(_compile(node.items, known)))
    if node.type == "object":
        inside = _object(node, known)
        return _both(own, (lambda value: inside(value, _NOTHING)) if inside is not None else None)
    return own


def _own(node: Node) -> Fits | None:
    """The limits of this very value, checked by the exact functions: a place with limits is seldom large."""
    formatted = not node.builtin and node.format and node.types in ((), ("string",))
    if not formatted and not any(keyword in node.raw for keyword in _LIMITS):
        return None
    raw, limits = node.raw, set(node.raw) & set(_LIMITS)
    if formatted and node.type == "string" and not limits:
        return string_format(node.format)
    if limits == {"enum"} and node.type == "string" and not formatted:
        allowed = frozenset(raw["enum"])
        return lambda value: value in allowed
    if limits <= {"minLength", "maxLength"} and node.type == "string" and not formatted:
        return _long_enough(raw)
    if limits <= {"minimum", "maximum"} and node.type == "integer" and not {"exclusiveMinimum", "exclusiveMaximum"} & set(raw):
        return _between(node)
    if node.type in ("object", "array") and not limits & {"enum", "allOf", "anyOf", "oneOf", "not", "uniqueItems"}:
        return _sized(raw)
    return _exact(node)


def _long_enough(raw: dict[str, Any]) -> Fits:
    low, high = raw.get("minLength", 0), raw.get("maxLength", 1 << 62)
    return lambda value: type(value) is str and low <= len(value) <= high


def _between(node: Node) -> Fits:
    least, most = integer_range(node)
    low, high = max(node.raw.get("minimum", least), least), min(node.raw.get("maximum", most), most)
    return lambda value: type(value) is int and low <= value <= high


def _exact(node: Node) -> Fits:
    def fits(value: Any) -> bool:
        found: list[Any] = []
        check_value(value, node, "", found)
        return not found

    return fits


def _sized(raw: dict[str, Any]) -> Fits:
    low = max(raw.get("minItems", 0), raw.get("minProperties", 0))
    high = min(raw.get("maxItems", 1 << 62), raw.get("maxProperties", 1 << 62))
    return lambda value: low <= len(value) <= high


def _each_item(inner: Fits | None) -> Fits | None:
    if inner is None:
        return None

    def fits(value: Any) -> bool:
        for one in value:  # noqa: SIM110  (a generator would cost more than the loop)
            if not inner(one):
                return False
        return True

    return fits


def _object(node: Node, known: dict[int, Fits | None]) -> Changed | None:
    """By what is there: most objects have few of the fields that they could have."""
    checks = {name: found for name, child in node.properties.items() if (found := _compile(child, known))}
    required, named = _required(node), node.properties
    additional = _compile(node.additional, known) if node.additional is not None else None
    if not checks and not required and additional is None:
        return None

    def fits(value: dict[str, Any], old: dict[str, Any]) -> bool:
        for name in required:
            if name not in value:
                return False
        for name, one in value.items():
            check = checks.get(name) or (additional if name not in named else None)
            if check is not None and one is not None and one is not old.get(name) and not check(one):
                return False
        return True

    return fits


def _required(node: Node) -> tuple[str, ...]:
    return () if node.builtin else tuple(node.required)


def _both(first: Fits | None, second: Fits | None) -> Fits | None:
    if first is None or second is None:
        return first or second
    return lambda value: first(value) and second(value)
