"""Sets of field paths, in the very form that `fieldsV1` has on the wire, so that reading and writing them costs nothing.

    {"f:spec": {"f:replicas": {}, "f:ports": {".": {}, "k:{\"port\":80}": {".": {}, "f:port": {}}}}}

An empty object is a path that is in the set. An object with entries is a path in the set only if one of them is ".".
Sets are values: every function gives a new one and shares what did not change, nothing is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

FieldSet = dict[str, Any]
LEAF: Final[FieldSet] = {}
SELF: Final = "."


def is_empty(fields: FieldSet) -> bool:
    """Whether a whole set has no path in it. (Below the root an empty object is a path that is in it.)"""
    return not fields


def of_paths(paths: Iterable[tuple[str, ...]]) -> FieldSet:
    """The set of these paths, each given by its elements: `("f:metadata", "f:labels")`."""
    whole: FieldSet = {}
    for path in paths:
        one = LEAF
        for element in reversed(path):
            one = {element: one}
        whole = union(whole, one)
    return whole


def contains(fields: FieldSet, path: tuple[str, ...]) -> bool:
    place = fields
    for element in path:
        if element not in place:
            return False
        place = place[element]
    return bool(path) and (not place or SELF in place)


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    if not one or one is other:
        return other
    if not other:
        return one
    merged = dict(one)
    for element, inner in other.items():
        mine = merged.get(element)
        merged[element] = inner if mine is None else _union_below(mine, inner)
    return merged


def _union_below(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other or (not one and not other):
        return one
    merged = union(one, other)
    if (not one or not other) and SELF not in merged:
        merged = {SELF: LEAF, **merged}
    return merged


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in the first and not in the second, path by path: taking away a path leaves what is below it."""
    left: FieldSet = {}
    for element, inner in one.items():
        theirs = other.get(element)
        rest = inner if theirs is None else _difference_below(inner, theirs)
        if rest is not None:
            left[element] = rest
    return left


def _difference_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    is_taken = not other or SELF in other
    if not one:
        return None if is_taken else one
    rest = difference(one, other)
    if is_taken:
        rest.pop(SELF, None)
    return _normal(rest)


def _normal(fields: FieldSet) -> FieldSet | None:
    """{".": {}} alone is the same path as {}."""
    if not fields:
        return None
    return LEAF if len(fields) == 1 and SELF in fields else fields


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in the first and neither in the second nor below a path of it."""
    left: FieldSet = {}
    for element, inner in one.items():
        theirs = other.get(element)
        if theirs is None:
            left[element] = inner
        elif theirs and SELF not in theirs:
            rest = _normal(without(inner, theirs)) if inner else inner
            if rest is not None:
                left[element] = rest
    return left


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    both: FieldSet = {}
    for element, inner in one.items():
        theirs = other.get(element)
        if theirs is not None:
            common = _intersection_below(inner, theirs)
            if common is not None:
                both[element] = common
    return both


def _intersection_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    is_in = (not one or SELF in one) and (not other or SELF in other)
    inside = {element: inner for element, inner in intersection(one, other).items() if element != SELF}
    if is_in:
        return {SELF: LEAF, **inside} if inside else LEAF
    return inside or None


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every path of the set, for people and tests."""
    found: list[tuple[str, ...]] = []
    for element, inner in fields.items():
        if element == SELF:
            continue
        path = (*prefix, element)
        if not inner or SELF in inner:
            found.append(path)
        found.extend(paths(inner, path))
    return found
