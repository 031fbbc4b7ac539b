"""How deep a body goes: told from its bytes, before anything follows it down.

Whatever walks through a document calls itself for each level. Bodies of people and programs have ten levels, some schemas forty.
"""

from __future__ import annotations

import re

DEEPEST = 150
_TOKEN = re.compile(rb'[{}\[\]]|"(?:[^"\\]++|\\.)*+"')


def too_deep() -> str:
    return f"it is nested deeper than {DEEPEST} levels"


def is_too_deep(raw: bytes) -> bool:
    """Of JSON. Quick where there are few brackets; else each is looked at."""
    if raw.count(b"{") + raw.count(b"[") <= DEEPEST:
        return False
    depth = 0
    for match in _TOKEN.finditer(raw):
        first = match.group()[0]
        if first in b"{[":
            depth += 1
            if depth > DEEPEST:
                return True
        elif first in b"}]":
            depth -= 1
    return False
