"""What a rule sees of a value: JSON has no durations, times, bytes or sets, schemas do."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.values import Duration, MapList, SetList, Timestamp
from herder.server.schema.node import Node

Convert = Callable[[Any], Any]


def converter(node: Node) -> Convert | None:
    """None where the value is seen as it is, which is the usual case and costs nothing."""
    if node.builtin or node.int_or_string:
        return None
    if node.type == "string":
        return _STRINGS.get(node.format)
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type == "array":
        return _list(node)
    return _object(node) if node.type == "object" else None


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value) if isinstance(value, str) else value
    except binascii.Error as error:
        raise CelError(f"illegal base64 data: {error}") from None


_STRINGS: dict[str, Convert] = {
    "byte": _bytes,
    "duration": lambda value: Duration.parse(value) if isinstance(value, str) else value,
    "date": lambda value: Timestamp.of_date(value) if isinstance(value, str) else value,
    "date-time": lambda value: Timestamp.parse(value) if isinstance(value, str) else value,
}


def _list(node: Node) -> Convert | None:
    inner = converter(node.items) if node.items is not None else None
    if node.list_type == "set":
        return lambda value: SetList(_each(value, inner)) if isinstance(value, list) else value
    if node.list_type == "map":
        return lambda value: _map_list(_each(value, inner), node.map_keys) if isinstance(value, list) else value
    return None if inner is None else lambda value: _each(value, inner) if isinstance(value, list) else value


def _each(value: list[Any], inner: Convert | None) -> list[Any]:
    return value if inner is None else [inner(one) for one in value]


def _map_list(items: list[Any], keys: tuple[str, ...]) -> MapList:
    made = MapList(items)
    made.keys = keys
    return made


def _object(node: Node) -> Convert | None:
    inner = {name: found for name, child in node.properties.items() if (found := converter(child))}
    additional = converter(node.additional) if node.additional is not None else None
    if not inner and additional is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if additional is not None:
            return {key: additional(one) for key, one in value.items()}
        return {key: inner[key](one) if key in inner else one for key, one in value.items()}

    return convert
