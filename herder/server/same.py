"""Whether two JSON values are the same. For Python `true` equals 1 and 1 equals 1.0; in JSON they are three different values."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def same_json(one: Any, other: Any) -> bool:
    """Python's answer is quick, and right wherever it is no. Most that is the same also has its names in the same order."""
    return bool(one == other) and (_encode(one) == _encode(other) or _same(one, other))


def _same(one: Any, other: Any) -> bool:
    """Of values that are equal to Python."""
    if isinstance(one, dict):
        fields: dict[str, Any] = one
        return all(_same(value, other[name]) for name, value in fields.items())
    if isinstance(one, list):
        items: list[Any] = one
        return all(_same(*pair) for pair in zip(items, other, strict=True))
    # 1 and 1.0 are written differently, and so are 0.0 and -0.0.
    return type(one) is type(other) and (type(one) is not float or _encode(one) == _encode(other))
