"""Keys that a JSON body holds twice. JSON allows it, the last one wins; strict field validation names them.

The usual body has none, and that is found out without walking it in Python: decoding keeps every key once, so a body with a
duplicate shows more `":` than what is decoded from it and encoded again. Two ways of writing could hide that (a space before a
colon, a quote written as a number); bodies that use them, and bodies that differ, are scanned token by token.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from herder.api.problems import shortened

_HIDING = (b" :", b"\n:", b"\t:", b"\r:", b"\\u0022")
_TOKEN = re.compile(rb'[{}\[\],]|"(?:[^"\\]++|\\.)*+"(?:\s*+:)?+')
# As many as Kubernetes names in one answer.
MOST_TOLD = 100


def duplicate_keys(raw: bytes, decoded: Any = None) -> list[str]:
    """Paths of the keys that appear more than once in one object, in document order; the first hundred. `decoded` saves
    decoding again."""
    value = msgspec.json.decode(raw) if decoded is None else decoded
    again = msgspec.json.encode(value)
    if again == raw:
        return []  # written as we would write it
    if raw.count(b'":') == again.count(b'":') and not any(one in raw for one in _HIDING):
        return []
    return _Scan(raw).paths()


class _Scan:
    """Goes over the tokens, keeping where it is. Only for bodies that are known to be valid JSON with a duplicate in them."""

    def __init__(self, raw: bytes) -> None:
        # Told once each, however often they are said; and in order, which a set would not keep.
        self._found: dict[str, None] = {}
        self._levels: list[_Level] = []
        for token in _TOKEN.finditer(raw):
            self._step(token.group())
            if len(self._found) >= MOST_TOLD:
                break

    def paths(self) -> list[str]:
        return list(self._found)

    def _step(self, token: bytes) -> None:
        first = token[:1]
        if first == b'"':
            if token.endswith(b":"):
                self._key(msgspec.json.decode(token[:-1].rstrip()))
        elif first in b"{[":
            self._levels.append(_Level(first == b"["))
        elif first in b"}]":
            self._levels.pop()
        elif self._levels[-1].is_list:
            self._levels[-1].index += 1

    def _key(self, key: str) -> None:
        level = self._levels[-1]
        level.key = key
        if key not in level.keys:
            level.keys[key] = False
        elif not level.keys[key]:
            level.keys[key] = True
            self._found[shortened(self._path())] = None

    def _path(self) -> str:
        """Made for those that are told alone: it may be long, and there may be many keys."""
        path = ""
        for level in self._levels:
            key = shortened(level.key)
            path += f"[{level.index}]" if level.is_list else f".{key}" if path else key
        return path


class _Level:
    __slots__ = ("index", "is_list", "key", "keys")

    def __init__(self, is_list: bool) -> None:
        self.is_list = is_list
        self.index = 0
        self.key = ""
        # And whether each has been told.
        self.keys: dict[str, bool] = {}
