"""What changed between two documents, as a JSON patch (RFC 6902)."""

from __future__ import annotations

from typing import Any

Operation = dict[str, Any]


def difference(old: Any, new: Any, path: str = "") -> list[Operation]:
    """The operations that make `new` of `old`."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _maps(old, new, path)
    if isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        return _lists(old, new, path)
    return [] if _same(old, new) else [{"op": "replace", "path": path, "value": new}]


def _maps(old: dict[str, Any], new: dict[str, Any], path: str) -> list[Operation]:
    operations: list[Operation] = [{"op": "remove", "path": f"{path}/{_escaped(name)}"} for name in old if name not in new]
    for name, value in new.items():
        place = f"{path}/{_escaped(name)}"
        operations += difference(old[name], value, place) if name in old else [{"op": "add", "path": place, "value": value}]
    return operations


def _lists(old: list[Any], new: list[Any], path: str) -> list[Operation]:
    operations: list[Operation] = []
    for index, value in enumerate(old):
        operations += difference(value, new[index], f"{path}/{index}")
    return operations + [{"op": "add", "path": f"{path}/-", "value": value} for value in new[len(old) :]]


def _same(old: Any, new: Any) -> bool:
    """1, 1.0 and true are equal in Python, and not in JSON."""
    return type(old) is type(new) and old == new


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
