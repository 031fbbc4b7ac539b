"""Which paths somebody owns who applies a configuration.

It does not own what merely contains its fields: not `spec`, not `metadata.labels`. It owns the pieces, the keys of maps, the items
of lists, and what it says is empty or null. Of an empty list nothing is owned: nobody can hold it.
"""

from __future__ import annotations

from typing import Any

from herder.server.fields.sets import LEAF, SELF, FieldSet
from herder.server.fields.shape import DEDUCED, PIECE, Fields, Items, Shape


class NotDivisible(Exception):
    """An item of a list has no key, or two have the same. `check_config` can say which."""


def owned(shape: Fields, config: dict[str, Any]) -> FieldSet:
    found: FieldSet = {}
    _fill(shape, config, found)
    return found


def _fill(shape: Fields, value: dict[str, Any], found: FieldSet) -> None:
    named, other = shape.named, shape.other
    for key, inner in value.items():
        entry = named.get(key)
        if entry is None:
            found[f"f:{key}"] = _with_self(_below(other, inner))
            continue
        part = _below(entry[1], inner)
        if part is not None:
            found[entry[0]] = part


def _with_self(part: FieldSet | None) -> FieldSet:
    """Keys of maps and items of lists are owned themselves, beside what is in them."""
    return {SELF: LEAF, **part} if part else LEAF


def _below(shape: Shape, value: Any) -> FieldSet | None:
    """The part of the set at this value: a leaf where the value is one piece, None where there is nothing to own."""
    if shape is PIECE or value is None or value == {}:
        return LEAF
    if isinstance(shape, Items):
        return _items(shape, value) or None if type(value) is list else LEAF
    if type(value) is not dict:
        return LEAF
    inner: FieldSet = {}
    if isinstance(shape, Fields):
        _fill(shape, value, inner)
    else:
        inner = {f"f:{key}": _with_self(_below(DEDUCED, one)) for key, one in value.items()}
    return inner or None


def _items(shape: Items, values: list[Any]) -> FieldSet:
    found: FieldSet = {}
    for one in values:
        element = shape.element(one)
        if element is None or element in found or (not shape.keys and type(one) in (dict, list, type(None))):
            raise NotDivisible
        found[element] = _with_self(_below(shape.inner, one))
    return found
