"""Defaulting as structural schemas do it: what is missing gets its default, then what is there is looked into.

A null where null is not allowed counts as missing: it becomes the default, and without a default it is dropped.
Only the branches of the schema that hold a default (or could hold such a null) are visited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.server.schema.node import ABSENT, Node

Apply = Callable[[Any], None]


def compile_defaults(root: Node) -> Apply:
    """A function that fills the defaults of a whole object in place."""
    return _compile(root, {}) or _nothing


def drop_nulls(value: Any, node: Node | None) -> None:
    """Removes the nulls that are not allowed and have no default; those with one are the business of defaulting."""
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            child = node.child(key) if node is not None else None
            if inner is None and child is not None and not child.nullable and child.default is ABSENT:
                del value[key]
            elif inner is not None:
                drop_nulls(inner, child)
    elif isinstance(value, list):
        for one in value:
            drop_nulls(one, node.items if node is not None else None)


def may_have_null(value: Any) -> bool:
    """Asked of the bytes, which is much quicker than a walk; a word in a text may look like one."""
    try:
        return b"null" in msgspec.json.encode(value)
    except (OverflowError, RecursionError):
        return True  # for others to refuse


def _nothing(value: Any) -> None:
    del value


def _compile(node: Node, known: dict[int, Apply | None]) -> Apply | None:
    """None where nothing below has a default. `known` also ends the recursion of schemas that contain themselves."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = None
    known[id(node)] = compiled = _compile_array(node, known) if node.items is not None else _compile_object(node, known)
    return compiled


def _compile_object(node: Node, known: dict[int, Apply | None]) -> Apply | None:
    children = [(name, child) for name, child in node.properties.items() if not child.builtin]
    fresh = [(name, _copier(child.default), child.nullable) for name, child in children if child.default is not ABSENT]
    deeper = [(name, apply) for name, child in children if (apply := _compile(child, known))]
    additional = node.additional
    inner = _compile(additional, known) if additional is not None else None
    if not fresh and not deeper and inner is None and (additional is None or additional.default is ABSENT):
        return None

    def apply_to(value: Any) -> None:
        if not isinstance(value, dict):
            return
        for name, copy, nullable in fresh:
            if name not in value or (value[name] is None and not nullable):
                value[name] = copy()
        for name, apply in deeper:
            if name in value:
                apply(value[name])
        if additional is not None:
            _default_each(value, [key for key in value if key not in node.properties], additional, inner)

    return apply_to


def _compile_array(node: Node, known: dict[int, Apply | None]) -> Apply | None:
    items = node.items
    assert items is not None
    inner = _compile(items, known)
    if inner is None and items.default is ABSENT:
        return None

    def apply_to(value: Any) -> None:
        if isinstance(value, list):
            _default_each(value, range(len(value)), items, inner)

    return apply_to


def _default_each(holder: Any, places: Any, node: Node, inner: Apply | None) -> None:
    for place in places:
        if holder[place] is None and not node.nullable and node.default is not ABSENT:
            holder[place] = _copier(node.default)()
        if inner is not None:
            inner(holder[place])


def _copier(default: Any) -> Callable[[], Any]:
    """Every object gets its own copy of a default that could be changed."""
    if isinstance(default, (dict, list)):
        raw = msgspec.json.encode(default)
        return lambda: msgspec.json.decode(raw)
    return lambda: default
