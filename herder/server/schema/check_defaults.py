"""Defaults must themselves be valid: what we fill in, we must accept."""

from __future__ import annotations

import msgspec

from herder.api import problems
from herder.api.problems import Problem
from herder.server.schema.node import ABSENT, Node
from herder.server.schema.unknown import prune, unknown_fields
from herder.server.schema.values import check_value


def check_defaults(node: Node, path: str, found: list[Problem]) -> None:
    """`found` gets the problems of every default anywhere in the schema."""
    if node.builtin:
        return
    if node.default is not ABSENT and node.default is not None:
        _check_default(node, f"{path}.default", found)
    if node.items is not None:
        check_defaults(node.items, f"{path}.items", found)
    if node.additional is not None:
        check_defaults(node.additional, f"{path}.additionalProperties", found)
    for name, child in node.properties.items():
        check_defaults(child, f"{path}.properties[{name}]", found)


def _check_default(node: Node, path: str, found: list[Problem]) -> None:
    default = msgspec.json.decode(msgspec.json.encode(node.default))
    if unknown_fields(default, node):
        prune(default, node)
        found.append(problems.invalid(path, node.default, "must not have unknown fields"))
    wrong: list[Problem] = []
    check_value(default, node, "", wrong)
    for one in wrong:
        where = path if one.field in ("", "<nil>") else f"{path}.{one.field}" if not one.field.startswith("[") else path + one.field
        found.append(Problem(where, one.reason, one.message))
