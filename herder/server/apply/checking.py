"""Why a configuration cannot be merged by the schema of its kind: unknown fields, wrong types, items that cannot be told apart.

An apply is refused for a field that its kind does not have, whatever `fieldValidation` says: nobody could own it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.server.schema.node import ABSENT, Node

Found = list[str]
_ABSENT = object()


def check_config(root: Node, config: dict[str, Any]) -> list[str]:
    """One sentence for each reason, with the path of the field; none where it can be merged."""
    found: Found = []
    _check(root, config, "", found)
    return found


def _check(node: Node, value: Any, path: str, found: Found) -> None:
    if value is None or node.int_or_string or len(node.types) > 1:
        return
    if node.type == "object" and (node.properties or node.additional is not None or node.preserve):
        _check_map(node, value, path, found)
    elif node.type == "array" and node.items is not None:
        _check_list(node, value, path, found)
    elif node.type in _SCALARS:
        expected, is_right = _SCALARS[node.type]
        if not is_right(value):
            found.append(f"{path}: expected {expected}, got {_shown(value)}")
    elif node.properties:
        _check_map(node, value, path, found)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("string", lambda value: isinstance(value, str)),
    "boolean": ("boolean", lambda value: isinstance(value, bool)),
    "integer": ("numeric (int or float)", _is_number),
    "number": ("numeric (int or float)", _is_number),
}


def _check_map(node: Node, value: Any, path: str, found: Found) -> None:
    if not isinstance(value, dict):
        found.append(f"{path}: expected map, got {_shown(value)}")
        return
    fields: dict[str, Any] = value
    for key, inner in sorted(fields.items()):
        child = node.properties.get(key) or node.additional
        if child is not None:
            _check(child, inner, f"{path}.{key}", found)
        elif not node.preserve:
            found.append(f"{path}.{key}: field not declared in schema")


def _check_list(node: Node, value: Any, path: str, found: Found) -> None:
    if not isinstance(value, list):
        found.append(f"{path}: expected list, got {_shown(value)}")
        return
    assert node.items is not None
    items: list[Any] = value
    seen: set[str] = set()
    for number, item in enumerate(items):
        place, reason = _place(node, number, item)
        if reason:
            found.append(f"{path}: element {number}: {reason}")
            return
        if place in seen:
            found.append(f"{path}: duplicate entries for key {place}")
        seen.add(place)
        _check(node.items, item, path + place, found)


def _place(node: Node, number: int, item: Any) -> tuple[str, str]:
    """How the item is named in its list, or why it cannot be."""
    if node.list_type == "set":
        if isinstance(item, (dict, list)) or item is None:
            return "", f"an item of a set must be a plain value, not {_shown(item)}"
        return f"[={_text(item)}]", ""
    if node.list_type != "map":
        return f"[{number}]", ""
    if not isinstance(item, dict):
        return "", f"associative list with keys may not have {'a null element' if item is None else 'non-map elements'}"
    assert node.items is not None
    pairs = [(key, item.get(key, _default(node.items, key))) for key in sorted(node.map_keys)]
    known = [f"{key}={_text(one)}" for key, one in pairs if one is not _ABSENT]
    if not known:
        return "", f"associative list with keys has an element that omits all key fields {list(node.map_keys)}"
    return f"[{','.join(known)}]", ""


def _default(item: Node, key: str) -> Any:
    child = item.properties.get(key)
    return _ABSENT if child is None or child.default is ABSENT else child.default


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _shown(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
