"""A configuration laid over an object: its pieces replace what is there, everything else stays.

Nothing is changed in place, and what stays the same is shared, so that comparing the two afterwards is cheap.
"""

from __future__ import annotations

from typing import Any

from herder.server.fields.shape import DEDUCED, PIECE, Deduced, Fields, Items, Shape

Keyed = list[tuple[str, Any]]


def merge(shape: Shape, live: Any, config: Any) -> Any:
    if shape is PIECE:
        return config
    if isinstance(shape, Items):
        return _merge_lists(shape, live, config)
    if not isinstance(live, dict) or not live:
        return config
    if config is None or config == {}:
        return live  # to say nothing of what is in it is not to remove it
    if not isinstance(config, dict):
        return config
    return _merge_maps(shape, live, config)


def _merge_maps(shape: Shape, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    merged = dict(live)
    for key, value in config.items():
        old = merged.get(key)
        if old is None:
            merged[key] = value
        else:
            inner = shape.named[key][1] if isinstance(shape, Fields) and key in shape.named else _other(shape)
            merged[key] = merge(inner, old, value)
    return merged


def _other(shape: Shape) -> Shape:
    if isinstance(shape, Fields):
        return shape.other
    return DEDUCED if isinstance(shape, Deduced) else PIECE


def _merge_lists(shape: Items, live: Any, config: Any) -> Any:
    if not isinstance(live, list) or not live:
        return config
    if not config:
        return live
    left, right = _keyed(shape, live), _keyed(shape, config)
    theirs, mine = _by_element(left), dict(right)
    merged = {element: merge(shape.inner, theirs[element], item) if element in theirs else item for element, item in right}
    return [merged[element] if element in mine else item for element, item in _in_order(left, right, theirs, mine)]


def _keyed(shape: Items, items: list[Any]) -> Keyed:
    return [(shape.element(item) or f"?{number}", item) for number, item in enumerate(items)]


def _by_element(items: Keyed) -> dict[str, Any]:
    """Items that share an element cannot be merged into: they count as null."""
    found: dict[str, Any] = {}
    for element, item in items:
        found[element] = None if element in found else item
    return found


def _in_order(left: Keyed, right: Keyed, theirs: dict[str, Any], mine: dict[str, Any]) -> Keyed:
    """What both have comes in the order of the configuration; what only one has keeps its place before what follows it there."""
    shared = iter([element for element, _ in right if element in theirs])
    awaited = next(shared, None)
    result: Keyed = []
    taken: set[str] = set()
    i = j = 0
    while i < len(left) or j < len(right):
        here = left[i][0] if i < len(left) else None
        there = right[j][0] if j < len(right) else None
        if here is not None and here not in mine:
            result.append(left[i])
            i += 1
            continue
        if here is not None and there is not None and here != there and awaited not in (None, here):
            i += 1  # it gets its place where the configuration has it
            continue
        if here is not None and (here == there or here in taken):
            i += 1
        if there is not None:
            result.append(right[j])
            taken.add(there)
            j += 1
            awaited = next(shared, None) if there == awaited else awaited
    return result
