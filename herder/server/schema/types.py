"""Wrong types in built-in kinds (and in the metadata of every kind), in the words of Go's JSON decoder."""

from __future__ import annotations

from typing import Any

from herder.api.problems import shown
from herder.api.quantity import parse_quantity
from herder.server.schema.formats import is_base64, is_date_time
from herder.server.schema.node import Node
from herder.server.schema.values import json_type

_GO_NAMES = {"string": "string", "boolean": "bool", "object": "object", "array": "array", "integer": "number", "number": "number"}
_LIMITS = {"int32": 2**31, "int64": 2**63}


def type_errors(obj: Any, root: Node) -> list[str]:
    """Whole sentences in document order; Kubernetes answers with the first of them."""
    found: list[str] = []
    if root.builtin:
        _check(obj, root, _Place("", "", root), found)
    elif isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
        meta = root.properties["metadata"]
        _check(obj["metadata"], meta, _Place("ObjectMeta", "metadata", meta), found)
    return found


class _Place:
    """Where a value stands, as Go says it: the innermost struct, and the names on the way, without indices."""

    __slots__ = ("node", "path", "struct")

    def __init__(self, struct: str, path: str, node: Node) -> None:
        self.struct = struct
        self.path = path
        self.node = node

    def sentence(self, value: Any, kind: str) -> str:
        seen = _GO_NAMES.get(kind, kind)
        if kind in ("integer", "number") and ("integer" in self.node.types or "number" in self.node.types):
            seen = f"number {shown(value)}"
        where = f"Go struct field {self.struct}.{self.path}" if self.struct else "Go value"
        return f"json: cannot unmarshal {seen} into {where} of type {go_type(self.node)}"


def _check(value: Any, node: Node, place: _Place, found: list[str]) -> None:
    if value is None or (not node.types and node.preserve) or not node.types:
        return
    kind = json_type(value)
    if node.types == ("string", "number"):
        _check_quantity(value, kind, found)
    elif kind not in node.types and not (kind == "integer" and node.type == "number"):
        found.append(place.sentence(value, kind))
    elif kind == "integer":
        limit = _LIMITS.get("int32" if node.int_or_string else node.format, 2**63)
        if not -limit <= value < limit:
            found.append(place.sentence(value, kind))
    elif kind == "string":
        _check_string(value, node, found)
    elif kind == "array":
        for one in value:
            if node.items is not None:
                _check(one, node.items, _Place(place.struct, place.path, node.items), found)
    elif kind == "object":
        _check_object(value, node, place, found)


def _check_object(value: dict[str, Any], node: Node, place: _Place, found: list[str]) -> None:
    struct = node.name.rpartition(".")[2] or place.struct or _kind(node)
    for key, inner in value.items():
        child = node.properties.get(key)
        if child is not None:
            _check(inner, child, _Place(struct, f"{place.path}.{key}" if place.path else key, child), found)
        elif node.additional is not None:
            _check(inner, node.additional, _Place(place.struct, place.path, node.additional), found)


def _kind(node: Node) -> str:
    kinds = node.raw.get("x-kubernetes-group-version-kind")
    return kinds[0]["kind"] if kinds else ""


def _check_quantity(value: Any, kind: str, found: list[str]) -> None:
    """Numbers are quantities too; what is neither a number nor a string is read as its JSON text, and fails as that."""
    try:
        parse_quantity(value if kind in ("string", "integer", "number") else shown(value))
    except ValueError as error:
        found.append(str(error))


def _check_string(value: str, node: Node, found: list[str]) -> None:
    if node.format == "date-time" and not (value[10:11] == "T" and is_date_time(value)):
        layout = "2006-01-02T15:04:05Z07:00"
        found.append(f'parsing time {shown(value)} as "{layout}": cannot parse {shown(value)} as "2006"')
    elif node.format == "byte" and not is_base64(value):
        wrong = (index for index, one in enumerate(value) if not (one.isascii() and (one.isalnum() or one in "+/=\r\n")))
        bad = next(wrong, len(value) // 4 * 4)
        found.append(f"illegal base64 data at input byte {bad}")


def go_type(node: Node) -> str:
    """`int32`, `[]v1.Container`, `map[string]string`: the type as Go prints it."""
    if node.name and node.type == "object":
        version, _, kind = node.name.rpartition(".")
        return f"{version.rpartition('.')[2]}.{kind}"
    if node.type == "array":
        return f"[]{go_type(node.items)}" if node.items is not None else "[]interface {}"
    if node.type == "object":
        return f"map[string]{go_type(node.additional)}" if node.additional is not None else "map[string]interface {}"
    if node.int_or_string:
        return "int32"
    if node.type == "string":
        return "[]uint8" if node.format == "byte" else "string"
    if node.type == "integer":
        return node.format or "int64"
    return {"boolean": "bool", "number": "float64"}.get(node.type, "interface {}")
