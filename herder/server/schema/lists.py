"""Lists that are really sets or maps (`x-kubernetes-list-type`): no item, no key may be there twice."""

from __future__ import annotations

from typing import Any

from herder.api import problems
from herder.api.problems import Problem, shown
from herder.server.schema.node import Node


def has_unique_lists(node: Node, seen: set[int] | None = None) -> bool:
    """Whether any list below is a set or a map, so that objects without one are never walked."""
    seen = set() if seen is None else seen
    if id(node) in seen or node.builtin:
        return False
    seen.add(id(node))
    if node.list_type in ("set", "map"):
        return True
    below = [*node.properties.values(), *(one for one in (node.items, node.additional) if one is not None)]
    return any(has_unique_lists(one, seen) for one in below)


def check_lists(value: Any, node: Node, path: str, out: list[Problem], old: Any = None) -> None:
    """What is the very same in the old object is not looked at."""
    if isinstance(value, list):
        if node.list_type == "set":
            out.extend(problems.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif node.list_type == "map":
            _check_map(value, node, path, out)
        if node.items is not None:
            for index, one in enumerate(value):
                check_lists(one, node.items, f"{path}[{index}]", out)
    elif isinstance(value, dict):
        before: Any = old if isinstance(old, dict) else {}
        for key, inner in value.items():
            previous = before.get(key)
            if (type(inner) is not dict and type(inner) is not list) or inner is previous:
                continue
            child = node.properties.get(key)
            if child is not None:
                check_lists(inner, child, f"{path}.{key}" if path else key, out, previous)
            elif node.additional is not None:
                check_lists(inner, node.additional, f"{path}[{key}]", out, previous)


def _check_map(value: list[Any], node: Node, path: str, out: list[Problem]) -> None:
    for index, one in enumerate(value):
        if one is not None and not isinstance(one, dict):
            out.append(problems.invalid(f"{path}[{index}]", one, "must be an object for an array of list-type map"))
            return
    if _surely_unique(value, node.map_keys):
        return
    keys = [{key: one[key] for key in node.map_keys if key in one} if one else {} for one in value]
    out.extend(problems.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys))


def _surely_unique(value: list[Any], keys: tuple[str, ...]) -> bool:
    """The usual case, cheaply: every item has its keys, and no two the same."""
    try:
        return len({tuple([one[key] for key in keys]) for one in value}) == len(value)
    except (KeyError, TypeError):
        return False


def _repeated(values: list[Any]) -> list[int]:
    """The second appearance of each value; a third one says nothing new."""
    seen: dict[Any, int] = {}
    found: list[int] = []
    for index, one in enumerate(values):
        key = shown(_sorted(one)) if isinstance(one, (dict, list)) else (type(one), one)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value
