"""A label selector as people type it, as the term that a migration adds."""

from __future__ import annotations

from typing import Any

from herder.api.selector_text import parse_selector
from herder.api.selectors import DOES_NOT_EXIST, DOUBLE_EQUALS, EQUALS, EXISTS, GREATER, IN, LESS, NOT_EQUALS, NOT_IN

_OPERATORS = {
    EQUALS: "In",
    DOUBLE_EQUALS: "In",
    IN: "In",
    NOT_EQUALS: "NotIn",
    NOT_IN: "NotIn",
    EXISTS: "Exists",
    DOES_NOT_EXIST: "DoesNotExist",
    GREATER: "Gt",
    LESS: "Lt",
}


def term_from_text(text: str) -> dict[str, Any]:
    """ValueError where it is no selector, or selects everything."""
    requirements = parse_selector(text).requirements
    if not requirements:
        raise ValueError("it is empty: leave it out to let the scheduler choose")
    return {"matchExpressions": [_expression(one.key, _OPERATORS[one.operator], one.values) for one in requirements]}


def _expression(key: str, operator: str, values: Any) -> dict[str, Any]:
    listed = sorted(values)
    return {"key": key, "operator": operator, **({"values": listed} if listed else {})}
