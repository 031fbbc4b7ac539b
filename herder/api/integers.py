"""Integers in text, read as strictly as Go reads them: ASCII digits and one sign, no blanks, no underscores, 64 bits."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"[+-]?[0-9]+")
MIN_INT64 = -(1 << 63)
MAX_INT64 = (1 << 63) - 1


def parse_int64(text: str) -> int | None:
    """The number that `text` is, or None when it is not one or does not fit into 64 bits."""
    # 4,000 zeros before a digit are still a number to Go; Python refuses to convert more than 4,300 digits.
    if len(text) > 4000 or not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None
