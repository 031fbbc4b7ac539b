"""Functions on lists, sets and optional values."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import NONE, Duration, Optional, compare, equal, is_in

_ORDERED = ("int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp")


@function(*(f"list({one}).isSorted() bool" for one in _ORDERED))
def _is_sorted(items: list[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in itertools.pairwise(items))


@function("list(int).sum() int", "list(uint).sum() uint", "list(double).sum() double")
def _sum(items: list[Any]) -> Any:
    return type(items[0])(sum(items)) if items else 0


@function("list(duration).sum() duration")
def _sum_durations(items: list[Duration]) -> Duration:
    return Duration(sum(one.nanoseconds for one in items))


@function(*(f"list({one}).min() {one}" for one in _ORDERED))
def _min(items: list[Any]) -> Any:
    if not items:
        raise CelError("min called on empty list")
    return min(items, key=functools.cmp_to_key(compare))


@function(*(f"list({one}).max() {one}" for one in _ORDERED))
def _max(items: list[Any]) -> Any:
    if not items:
        raise CelError("max called on empty list")
    return max(items, key=functools.cmp_to_key(compare))


@function("list(A).indexOf(A) int")
def _index_of(items: list[Any], item: Any) -> int:
    return next((index for index, one in enumerate(items) if equal(one, item)), -1)


@function("list(A).lastIndexOf(A) int")
def _last_index_of(items: list[Any], item: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], item)), -1)


@function("list(A).slice(int, int) list(A)")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@function("list(A).distinct() list(A)")
def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in items:
        if not is_in(one, found):
            found.append(one)
    return found


@function("list(A).reverse() list(A)")
def _reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


@function("list(A).sort() list(A)")
def _sort(items: list[Any]) -> list[Any]:
    return sorted(items, key=functools.cmp_to_key(compare))


@function("list(list(A)).flatten() list(A)", "list(dyn).flatten() list(dyn)")
def _flatten(items: list[Any]) -> list[Any]:
    return _flatten_to(items, 1)


@function("list(dyn).flatten(int) list(dyn)")
def _flatten_to(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for one in items:
        flat.extend(_flatten_to(one, depth - 1) if isinstance(one, list) and depth > 0 else [one])
    return flat


@function("lists::range(int) list(int)")
def _range(count: int) -> list[int]:
    if count > 100_000:
        raise CelError("range is too long")
    return list(range(count))


@function("list(A).first() optional(A)")
def _first(items: list[Any]) -> Optional:
    return Optional(True, items[0]) if items else NONE


@function("list(A).last() optional(A)")
def _last(items: list[Any]) -> Optional:
    return Optional(True, items[-1]) if items else NONE


@function("sets::contains(list(A), list(A)) bool")
def _set_contains(items: list[Any], part: list[Any]) -> bool:
    return all(is_in(one, items) for one in part)


@function("sets::equivalent(list(A), list(A)) bool")
def _set_equivalent(items: list[Any], others: list[Any]) -> bool:
    return _set_contains(items, others) and _set_contains(others, items)


@function("sets::intersects(list(A), list(A)) bool")
def _set_intersects(items: list[Any], others: list[Any]) -> bool:
    return any(is_in(one, items) for one in others)


@function("optional::of(A) optional(A)")
def _of(value: Any) -> Optional:
    return Optional(True, value)


@function("optional::ofNonZeroValue(A) optional(A)")
def _of_non_zero(value: Any) -> Optional:
    return Optional(True, value) if value else NONE


@function("optional::none() optional(A)")
def _none() -> Optional:
    return NONE


@function("optional(A).hasValue() bool")
def _has_value(value: Optional) -> bool:
    return value.has


@function("optional(A).value() A")
def _value(value: Optional) -> Any:
    if not value.has:
        raise CelError("optional.none() dereference")
    return value.value


@function("optional(A).orValue(A) A")
def _or_value(value: Optional, other: Any) -> Any:
    return value.value if value.has else other


@function("optional(A).or(optional(A)) optional(A)")
def _or(value: Optional, other: Optional) -> Optional:
    return value if value.has else other
