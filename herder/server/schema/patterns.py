"""Regular expressions as Go reads them (RE2), carried over to Python's.

What RE2 does not know (look-around, back-references) is refused, so that a CRD that is accepted here is accepted there.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z",
    "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
# Classes of Unicode that Python's re has no name for; letters and numbers are what schemas use.
_UNICODE = {"L": r"A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\U0003ffff", "N": r"0-9\u00b2\u00b3\u00b9\u0660-\u0669",
            "Lu": "A-Z\u00c0-\u00d6\u00d8-\u00de", "Ll": "a-z\u00df-\u00f6\u00f8-\u00ff", "Nd": r"0-9\u0660-\u0669"}  # fmt: skip


class PatternError(ValueError):
    """The pattern is not one that Go would compile."""


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, ready for `.search`. PatternError says what is wrong with it."""
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except re.error as error:
        raise PatternError(f"error parsing regexp: {error}") from None


class _Translation:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.in_class = False
        self.flags = ""

    def text(self) -> str:
        out: list[str] = []
        while self.at < len(self.pattern):
            out.append(self._next())
        return f"{self.flags}{''.join(out)}"

    def _next(self) -> str:
        rest = self.pattern[self.at :]
        character = rest[0]
        if character == "\\":
            return self._escape(rest)
        self.at += 1
        if self.in_class:
            return self._within_class(rest)
        if character == "[":
            self.in_class = True
            opening = re.match(r"\[\^?\]?", rest)
            assert opening is not None
            self.at += opening.end() - 1
            return opening.group().replace("]", r"\]")
        if character == "$":
            return r"\Z"  # Python's $ also matches before a last newline
        return self._group(rest) if character == "(" else character

    def _within_class(self, rest: str) -> str:
        named = re.match(r"\[:(\^?)(\w+):\]", rest)
        if named:
            if named.group(1) or named.group(2) not in _POSIX:
                raise PatternError(f"error parsing regexp: invalid character class range: `{named.group()}`")
            self.at += named.end() - 1
            return _POSIX[named.group(2)]
        if rest[0] == "]":
            self.in_class = False
        return r"\[" if rest[0] == "[" else rest[0]

    def _escape(self, rest: str) -> str:
        if len(rest) == 1:
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        self.at += 2
        if rest[1] in "123456789" and not self.in_class:
            raise PatternError(f"error parsing regexp: invalid escape sequence: `{rest[:2]}`")
        if rest[1] == "z":
            return r"\Z"
        if rest[1] == "Q":
            return self._quoted(rest)
        named = re.match(r"\\([pP])(?:\{(\w+)\}|(\w))", rest)
        if named:
            return self._unicode(named)
        return rest[:2]

    def _quoted(self, rest: str) -> str:
        literal, end, _ = rest[2:].partition(r"\E")
        self.at += len(literal) + len(end)
        return re.escape(literal)

    def _unicode(self, named: re.Match[str]) -> str:
        inside = _UNICODE.get(named.group(2) or named.group(3))
        if inside is None or (named.group(1) == "P" and self.in_class):
            raise PatternError(f"error parsing regexp: invalid character class range: `{named.group()}`")
        self.at += named.end() - 2
        if self.in_class:
            return inside
        return f"[^{inside}]" if named.group(1) == "P" else f"[{inside}]"

    def _group(self, rest: str) -> str:
        opening = re.match(r"\(\?(P?<(?![=!])\w+>|[imsU-]+[:)]|:)?", rest)
        if opening is None:
            return "("
        if opening.group(1) is None:
            raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{rest[:3]}`")
        self.at += opening.end() - 1
        text = opening.group()
        if text.endswith(")") and opening.group(1) != ":":
            return self._whole_flags(text)
        return text.replace("(?<", "(?P<").replace("U", "")

    def _whole_flags(self, text: str) -> str:
        """`(?i)` applies from here on; Python wants such flags at the very start."""
        letters = "".join(one for one in text if one in "ims")
        if self.at != len(text):
            raise PatternError(f"error parsing regexp: flags must come first: `{text}`")
        self.flags = f"(?{letters})" if letters else ""
        return ""
