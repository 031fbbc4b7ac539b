"""JSON with the names of every object in order, for whatever somebody else has named.

msgspec sorts by itself, and quickly for the few names that objects have. For many it takes their square, and not only in rare
cases: a map of 40,000 names in order with one at its end that belongs to the front takes four seconds. So what is large is put in
order here, by Python's own sorting.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
# A few hundred names at most, whose square is nothing.
SMALL = 8 * 1024
FEW = 64


def encode_sorted(value: Any) -> bytes:
    small = len(_encode(value)) <= SMALL
    return _encode_sorted(value if small else _in_order(value))


def _in_order(value: Any) -> Any:
    """Where there are many names. What is in order already, msgspec leaves so in no time; the others are few."""
    if type(value) is dict:
        fields: dict[str, Any] = value
        names = sorted(fields) if len(fields) > FEW else fields
        return {name: _in_order(inner) if (inner := fields[name]) else inner for name in names}
    if type(value) is list:
        items: list[Any] = value
        return [_in_order(item) for item in items]
    return value
