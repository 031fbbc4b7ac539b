"""Fields that people write in more than one shape, brought into one when read.

The schema leaves these fields untyped: an API server prunes and applies by the schema before any webhook could mend them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def label_text(value: Any) -> str | None:
    """A label value as a string. YAML makes `true` a boolean and `1` a number; both are meant as they are written.

    None for what has no one spelling: a list, a map, null, or a number with a fraction (1.10 arrives as 1.1).
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None


def label_pairs(selector: Mapping[str, Any] | None) -> dict[str, str]:
    """The pairs of a MigrationPolicy's selector as labels. ValueError for a value that can be no label value."""
    pairs: dict[str, str] = {}
    for key, value in (selector or {}).items():
        text = label_text(value)
        if text is None:
            raise ValueError(f"the value of {key} is no string: write it in quotes")
        pairs[key] = text
    return pairs


def added_term(value: Any) -> dict[str, Any]:
    """`addedNodeSelectorTerm` as one term; {} where there is none. ValueError for a list of several and for anything else."""
    if isinstance(value, list):
        if len(value) > 1:
            raise ValueError(several_terms(len(value)))
        value = value[0] if value else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("must be one NodeSelectorTerm, with matchExpressions or matchFields")
    return value


def several_terms(count: int) -> str:
    return (
        f"must be one term, not {count}: several terms would mean that one of them is enough, and this field only ever narrows the"
        " choice; write all expressions into one term"
    )
