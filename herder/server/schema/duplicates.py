"""Keys that a JSON body holds twice. JSON allows it, the last one wins; strict field validation names them.

The usual body has none, and that is found out without walking it in Python: decoding keeps every key once, so a body with a
duplicate shows more `":` than what is decoded from it and encoded again. Two ways of writing could hide that (a space before a
colon, a quote written as a number); bodies that use them, and bodies that differ, are scanned token by token.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_HIDING = (b" :", b"\n:", b"\t:", b"\r:", b"\\u0022")
_TOKEN = re.compile(rb'[{}\[\],]|"(?:[^"\\]|\\.)*"\s*:|"(?:[^"\\]|\\.)*"')


def duplicate_keys(raw: bytes, decoded: Any = None) -> list[str]:
    """Paths of the keys that appear more than once in one object, in document order. `decoded` saves decoding again."""
    value = msgspec.json.decode(raw) if decoded is None else decoded
    again = msgspec.json.encode(value)
    if again == raw:
        return []  # written as we would write it
    if raw.count(b'":') == again.count(b'":') and not any(one in raw for one in _HIDING):
        return []
    return _Scan(raw).found


class _Scan:
    """Goes over the tokens, keeping where it is. Only for bodies that are known to be valid JSON with a duplicate in them."""

    def __init__(self, raw: bytes) -> None:
        self.found: list[str] = []
        self.levels: list[_Level] = []
        for token in _TOKEN.finditer(raw):
            self._step(token.group())

    def _step(self, token: bytes) -> None:
        first = token[:1]
        if first in b"{[":
            self.levels.append(_Level(self._path(), first == b"["))
        elif first in b"}]":
            self.levels.pop()
        elif first == b",":
            if self.levels[-1].is_list:
                self.levels[-1].index += 1
        elif token.endswith(b":"):
            self._key(msgspec.json.decode(token[:-1].rstrip()))

    def _key(self, key: str) -> None:
        level = self.levels[-1]
        level.key = key
        path = self._path()
        if key in level.keys and path not in self.found:
            self.found.append(path)
        level.keys.add(key)

    def _path(self) -> str:
        if not self.levels:
            return ""
        level = self.levels[-1]
        if level.is_list:
            return f"{level.path}[{level.index}]"
        return f"{level.path}.{level.key}" if level.path else level.key


class _Level:
    __slots__ = ("index", "is_list", "key", "keys", "path")

    def __init__(self, path: str, is_list: bool) -> None:
        self.path = path
        self.is_list = is_list
        self.index = 0
        self.key = ""
        self.keys: set[str] = set()
