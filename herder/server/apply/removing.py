"""What goes from an object because whoever applied it does so no longer, and nobody else holds it."""

from __future__ import annotations

from typing import Any

from herder.server.fields.sets import LEAF, SELF, FieldSet
from herder.server.fields.shape import DEDUCED, PIECE, Deduced, Fields, Items, Shape


def given_up(shape: Shape, before: FieldSet, held: FieldSet) -> FieldSet:
    """The paths of `before` that nobody holds now. A field that the schema names is held with anything in it; a key of a map or an
    item of a list has to be held itself."""
    gone: FieldSet = {}
    for element, inner in before.items():
        if element == SELF:
            continue
        theirs = held.get(element)
        is_named = _is_named(shape, element)
        if _is_member(inner, is_named) and (theirs is None or not _is_member(theirs, is_named)):
            gone[element] = LEAF
        elif inner:
            below = given_up(_inner(shape, element), inner, theirs or {})
            if below:
                gone[element] = below
    return gone


def _is_member(fields: FieldSet, is_named: bool) -> bool:
    return is_named or not fields or SELF in fields


def _is_named(shape: Shape, element: str) -> bool:
    return isinstance(shape, Fields) and element[2:] in shape.named


def _inner(shape: Shape, element: str) -> Shape:
    if isinstance(shape, Fields):
        entry = shape.named.get(element[2:])
        return entry[1] if entry is not None else shape.other
    if isinstance(shape, Items):
        return shape.inner
    return DEDUCED if isinstance(shape, Deduced) else PIECE


def remove(shape: Shape, value: Any, gone: FieldSet) -> Any:
    """The value without these paths. What loses all that was in it becomes null, not empty."""
    if isinstance(value, dict) and isinstance(shape, (Fields, Deduced)):
        kept: Any = {}
        for key, inner in value.items():
            element = f"f:{key}"
            left = _without(shape, element, inner, gone)
            if left is not _GONE:
                kept[key] = left
        return kept or None
    if isinstance(value, list) and isinstance(shape, Items):
        kept = [left for item in value if (left := _without(shape, shape.element(item) or "", item, gone)) is not _GONE]
        return kept or None
    return value


_GONE = object()


def _without(shape: Shape, element: str, value: Any, gone: FieldSet) -> Any:
    part = gone.get(element)
    if part is None:
        return value
    if not part or SELF in part:
        return _GONE
    return remove(_inner(shape, element), value, part)
