"""How deep a body goes and how much it holds: told from its bytes, before anything follows it down or walks through it.

Whatever walks through a document calls itself for each level, and spends a few microseconds on each value. Bodies of people and
programs have ten levels, some schemas forty; and thousands of values, large definitions twenty thousand.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEEPEST = 150
# Fields, items, objects and lists, all together. Bytes alone say little: a text of a megabyte is one value, and half a million
# empty lists are as many bytes.
MOST_VALUES = 50_000
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
# A value has one name at most, and may be a text itself.
_MOST_TEXTS = 2 * MOST_VALUES + 2
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_PLAIN_BRACKETS = bytes.maketrans(b"{}", b"[]")
# Enough to see that it sinks, in a body that holds too much anyway.
_FIRST = 4 * DEEPEST


def too_deep() -> str:
    return f"it is nested deeper than {DEEPEST} levels"


def too_many_values() -> str:
    return f"it holds more than {MOST_VALUES} values (fields, items, objects and lists, all counted together)"


class Extent(NamedTuple):
    """What is too much of a body, if anything."""

    too_deep: bool = False
    too_much: bool = False


_FINE = Extent()


def extent_of(raw: bytes) -> Extent:
    """Of JSON. Quick where the bytes alone show that it is fine; else its texts are taken out, and the rest is counted, in C."""
    brackets = raw.count(b"{") + raw.count(b"[")
    if brackets <= DEEPEST and (len(raw) <= MOST_VALUES or brackets + raw.count(b",") <= MOST_VALUES):
        return _FINE
    bare, texts = _TEXT.subn(b"", raw, count=_MOST_TEXTS)
    too_much = texts == _MOST_TEXTS or bare.count(b",") + bare.count(b"{") + bare.count(b"[") > MOST_VALUES
    return Extent(_is_deep(bare.translate(_PLAIN_BRACKETS, _NOT_BRACKETS), too_much), too_much)


def values_in(raw: bytes) -> int:
    """Of JSON: fields, items, objects and lists."""
    bare = _TEXT.sub(b"", raw)
    return 1 + bare.count(b",") + bare.count(b"{") + bare.count(b"[")


def is_too_deep(raw: bytes) -> bool:
    return extent_of(raw).too_deep


def _is_deep(brackets: bytes, too_much: bool) -> bool:
    if too_much:
        brackets = brackets[:_FIRST]
    for _ in range(DEEPEST):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    # A pair is still in it, or so many have not been closed. What never opens is no JSON: whoever reads it says so.
    return b"[]" in brackets or brackets.count(b"[") > DEEPEST
