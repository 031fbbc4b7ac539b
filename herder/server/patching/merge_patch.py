"""RFC 7386: objects are merged, null removes, everything else replaces."""

from __future__ import annotations

from typing import Any


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """Changes `document` in place where it is an object, and returns the result."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(document, dict):
        document = {}
    for name, value in patch.items():
        if value is None:
            document.pop(name, None)
        elif isinstance(value, dict):
            document[name] = apply_merge_patch(document.get(name), value)
        else:
            document[name] = value
    return document
