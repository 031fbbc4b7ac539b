"""Resources inside of resources (`x-kubernetes-embedded-resource`): they too must say what they are."""

from __future__ import annotations

import re
from typing import Any

from herder.api import problems
from herder.api.problems import Problem
from herder.server.schema.node import Node

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_KIND_SENTENCE = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def has_embedded(node: Node, seen: set[int] | None = None) -> bool:
    seen = set() if seen is None else seen
    if node.builtin or id(node) in seen:
        return False
    seen.add(id(node))
    below = [*node.properties.values(), *(one for one in (node.items, node.additional) if one is not None)]
    return any(one.embedded or has_embedded(one, seen) for one in below)


def check_embedded(value: Any, node: Node, path: str, out: list[Problem]) -> None:
    if isinstance(value, dict):
        if node.embedded and path:
            _check_type_meta(value, path, out)
        for key, inner in value.items():
            child = node.properties.get(key)
            if child is not None and not child.builtin:
                check_embedded(inner, child, f"{path}.{key}" if path else key, out)
            elif child is None and node.additional is not None:
                check_embedded(inner, node.additional, f"{path}[{key}]", out)
    elif isinstance(value, list) and node.items is not None:
        for index, one in enumerate(value):
            check_embedded(one, node.items, f"{path}[{index}]", out)


def _check_type_meta(value: dict[str, Any], path: str, out: list[Problem]) -> None:
    out.extend(problems.required(f"{path}.{key}") for key in ("apiVersion", "kind") if key not in value)
    for key in ("apiVersion", "kind"):
        if key not in value:
            continue
        if not isinstance(value[key], str):
            out.append(problems.invalid(f"{path}.{key}", value[key], "must be a string"))
        elif not value[key]:
            out.append(problems.invalid(f"{path}.{key}", "", "must not be empty"))
        elif key == "kind" and (not _LABEL.match(value[key].lower()) or len(value[key]) > 63):
            out.append(problems.invalid(f"{path}.{key}", value[key], _KIND_SENTENCE))
        elif key == "apiVersion" and value[key].count("/") > 1:
            out.append(problems.invalid(f"{path}.{key}", value[key], f"unexpected GroupVersion string: {value[key]}"))
