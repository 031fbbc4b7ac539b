"""Fields that the schema does not know: naming them (strict decoding) and dropping them (pruning) are the same walk."""

from __future__ import annotations

from typing import Any

from herder.api.problems import nearest, shortened
from herder.server.schema.node import Node

# As many as Kubernetes names in one answer.
MOST_TOLD = 100


def unknown_fields(obj: Any, root: Node) -> list[str]:
    """Paths as strict decoding names them, `spec.containers[0].bar`: in document order for built-in kinds, else sorted. A hundred
    at most."""
    found: list[str] = []
    _walk(obj, root, "", found, remove=False)
    return found if root.builtin else sorted(found)


def prune(obj: Any, root: Node) -> None:
    """Drops in place what the schema does not know."""
    _walk(obj, root, "", None, remove=True)


def _walk(value: Any, node: Node | None, path: str, found: list[str] | None, remove: bool, keep: bool = False) -> None:
    """`keep`: the unknown may stay here, though what is known inside is still looked into (preserve-unknown-fields)."""
    if isinstance(value, dict):
        _walk_object(value, node, path, found, remove, keep or (node is not None and node.preserve))
    elif isinstance(value, list) and not (keep and node is None):
        items = None if node is None else node.items
        kept = keep or (node is not None and node.preserve)
        if kept and items is None:
            return
        for index, one in enumerate(value):
            _walk(one, items, f"{path}[{index}]", found, remove, kept)


def _walk_object(value: dict[str, Any], node: Node | None, path: str, found: list[str] | None, remove: bool, keep: bool) -> None:
    if keep and (node is None or not (node.properties or node.additional)):
        return
    dropped: list[str] = []
    properties = {} if node is None else node.properties
    additional = None if node is None else node.additional
    prefix = f"{path}." if path else ""
    for key, inner in value.items():
        child = properties.get(key) or additional
        if child is None:
            if not keep:
                dropped.append(key)
        elif type(inner) is dict or type(inner) is list:
            _walk(inner, child, prefix + key, found, remove)
    if found is not None and len(found) < MOST_TOLD:
        prefix = shortened(prefix)
        found.extend(prefix + shortened(key) for key in dropped[: MOST_TOLD - len(found)])
    if remove:
        for key in dropped:
            del value[key]


def did_you_mean(path: str, root: Node) -> str | None:
    """The nearest known name beside an unknown field: `spec.replicas` for `spec.replcas`. None where nothing is near."""
    parent, _, last = path.rpartition(".")
    node = _at(parent, root)
    if node is None:
        return None
    refused = {rule.get("rule") for rule in node.rules}
    near = nearest(last, [name for name in node.properties if f"!has(self.{name})" not in refused])
    return f"{parent}.{near}" if parent and near else near


def _at(path: str, root: Node) -> Node | None:
    node: Node | None = root
    for step in path.split(".") if path else ():
        name, *indices = step.split("[")
        node = node.child(name) if node is not None else None
        for _ in indices:
            node = node.items if node is not None else None
    return node
