"""Text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from herder.server.schema.cel.errors import CompileError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<raw>(?:[rR][bB]?|[bB][rR])(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*'))
  | (?P<string>[bB]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<operator>&&|\|\||<=|>=|==|!=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SAME = "\\?\"'`"


class Token(NamedTuple):
    kind: str
    text: str
    at: int


def tokens(source: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CompileError(source, at, f"Syntax error: token recognition error at: '{source[at]}'")
        kind = "string" if match.lastgroup == "raw" else match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, match.group(), at))
        at = match.end()
    found.append(Token("end", "<EOF>", len(source)))
    return found


def string_value(source: str, token: Token) -> str | bytes:
    text = token.text
    quote_at = min(index for index in (text.find("'"), text.find('"')) if index >= 0)
    prefix, body = text[:quote_at].lower(), text[quote_at:]
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[width:-width]
    if "r" in prefix:
        return body.encode() if "b" in prefix else body
    if "b" in prefix:
        return b"".join(_as_bytes(part) for part in re.split(f"({_ESCAPE.pattern})", body, flags=re.DOTALL))
    return _ESCAPE.sub(lambda escape: _unescaped(source, token, escape.group()), body)


def _unescaped(source: str, token: Token, escape: str) -> str:
    letter = escape[1]
    if letter in _SIMPLE:
        return _SIMPLE[letter]
    if letter in _SAME:
        return letter
    if letter in "xXuU" and len(escape) > 2:
        return chr(int(escape[2:], 16))
    if len(escape) == 4:
        return chr(int(escape[1:], 8))
    raise CompileError(source, token.at, f"Syntax error: invalid escape sequence: {escape}")


def _as_bytes(part: str) -> bytes:
    if len(part) == 4 and part[:2] in ("\\x", "\\X"):
        return bytes([int(part[2:], 16)])
    if len(part) == 4 and part[0] == "\\" and part[1:].isdigit():
        return bytes([int(part[1:], 8)])
    if len(part) == 2 and part[0] == "\\":
        return _SIMPLE.get(part[1], part[1]).encode()
    return part.encode()
