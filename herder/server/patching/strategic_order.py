"""The order of a merged list: as the patch wants it, with what only the object has kept where it was."""

from __future__ import annotations

from typing import Any

from herder.server.patching.json_patch import PatchError

_NOWHERE = object()


def ordered_as(merged: list[Any], wanted: list[Any], before: list[Any], key: str) -> list[Any]:
    """`wanted` is the order that the patch gives, `before` the one that the object had; both may name more than there is."""
    first, then = places(wanted, key), places(before, key)
    mine = sorted((item for item in merged if at(item, key) in first), key=lambda item: first[at(item, key)])
    theirs = [item for item in merged if at(item, key) not in first]
    theirs.sort(key=lambda item: then.get(at(item, key), len(then)))
    result: list[Any] = []
    i = 0
    for item in mine:
        there = then.get(at(item, key), -1)
        while i < len(theirs) and then.get(at(theirs[i], key), len(then)) < there:
            result.append(theirs[i])
            i += 1
        result.append(item)
    return [*result, *theirs[i:]]


def check_against_order(items: list[Any], order: list[Any], key: str) -> None:
    """What the patch changes must be in the order that it gives, in that order."""
    wanted = [at(item, key) for item in order]
    if _NOWHERE in wanted:
        raise PatchError(f"an item of $setElementOrder does not contain the declared merge key: {key}")
    if not wanted:
        return
    rest = iter(wanted)
    if not all(any(at(item, key) == one for one in rest) for item in items):
        raise PatchError("the order in the patch list does not match the $setElementOrder list")


def places(items: list[Any], key: str) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for number, item in enumerate(items):
        found.setdefault(at(item, key), number)
    return found


def at(item: Any, key: str) -> Any:
    """What an item is found by: its merge key, or itself."""
    if key:
        value = item.get(key, _NOWHERE) if isinstance(item, dict) else _NOWHERE
    else:
        value = item
    if isinstance(value, (dict, list)):
        raise PatchError("a list is merged by plain values alone")
    return value
