"""Label selectors and labels as the text of a cell."""

from __future__ import annotations

from typing import Any

NONE = "<none>"
_SIGNS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: dict[str, Any] | None) -> str:
    """`app=web,tier in (a,b),!old`, by key; empty for a selector that is missing or empty."""
    if not selector:
        return ""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [(one.get("key", ""), _expression(one)) for one in selector.get("matchExpressions") or ()]
    return ",".join(term for _, term in sorted(terms, key=lambda keyed: keyed[0]))


def _expression(expression: dict[str, Any]) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {_SIGNS.get(operator, operator)} ({','.join(sorted(expression.get('values') or ()))})"


def labels_text(labels: dict[str, str] | None) -> str:
    return ",".join(sorted(f"{key}={value}" for key, value in (labels or {}).items())) or NONE
