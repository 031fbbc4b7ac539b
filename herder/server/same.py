"""Whether two JSON values are the same. For Python `true` equals 1 and 1 equals 1.0; in JSON they are three different values."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


def same_json(one: Any, other: Any) -> bool:
    """Python's answer is quick, and right wherever it is no."""
    return bool(one == other) and _encode(one) == _encode(other)
