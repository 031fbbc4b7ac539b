"""Regular expressions as Go reads them (RE2), carried over to Python's.

What RE2 does not know (look-around, back-references) is refused, so that a CRD that is accepted here is accepted there.
"""

from __future__ import annotations

import re
import re._constants as sre  # pyright: ignore[reportMissingImports]
import re._parser as parser  # pyright: ignore[reportMissingImports]
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from herder.server.schema.automaton import MOST_WORK, Automaton, TooCostly

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


# Longer ones are no patterns that a person wrote.
LONGEST = 10_000
# In Go, too, nothing may be repeated more often.
MOST_REPEATED = 1000


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """PatternError says what is wrong with it."""
    if len(pattern) > LONGEST:
        raise PatternError("error parsing regexp: expression too large")
    try:
        text = _Translation(pattern).text()
        tree = parser.parse(text, re.ASCII)
        return Pattern(Automaton(tree, tree.state.flags), _quick(tree, text))
    except (re.error, OverflowError) as error:
        raise PatternError(f"error parsing regexp: {error}") from None
    except (RecursionError, TooCostly):
        raise PatternError("error parsing regexp: expression nests too deeply, or is too large") from None


class Pattern:
    """What Go's regexp does with it, in time that grows with the text alone."""

    def __init__(self, automaton: Automaton, quick: re.Pattern[str] | None) -> None:
        self._automaton = automaton
        self._quick = quick
        # A herd says the same again and again: 32Mi, 100m, Ready.
        self._known: dict[str, bool] = {}

    def matches(self, text: str) -> bool:
        """Anywhere in the text."""
        if self._quick is not None and len(text) <= QUICK_TEXT:
            return self._quick.search(text) is not None
        if len(text) > LONGEST_KNOWN:
            return self._automaton.search(text)
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[text] = self._automaton.search(text)
        return known

    def find(self, text: str) -> str | None:
        """The first match. PatternError where that would take too long."""
        return next(self._all(text), None)

    def find_all(self, text: str, most: int = -1) -> list[str]:
        return list(islice(self._all(text), most if most >= 0 else None))

    def _all(self, text: str) -> Iterator[str]:
        """An empty match that touches the one before it does not count, as in Go."""
        before = -1
        for start, end in self._spans(text):
            if start != end or start != before:
                yield text[start:end]
            before = end

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._quick is not None and len(text) <= QUICK_TEXT:
            yield from (match.span() for match in self._quick.finditer(text))
            return
        at, work = 0, [MOST_WORK]
        try:
            while at <= len(text) and (found := self._automaton.find(text, at, work)) is not None:
                yield found
                at = found[1] + (found[0] == found[1])
        except TooCostly as error:
            raise PatternError(str(error)) from None


# With no more than this, and nothing repeated within or beside another repetition, trying one way after the other is faster.
QUICK_TEXT = 256
# What is remembered of a pattern: so many texts, of so many letters at most.
MOST_KNOWN = 1000
LONGEST_KNOWN = 100
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)


def _quick(tree: Any, text: str) -> re.Pattern[str] | None:
    """Python's own engine, where there is no more than one place at which it could try different lengths."""
    return re.compile(text, re.ASCII) if _choices(tree) <= 1 else None


def _choices(tree: Any) -> int:
    """In how many places a match could have different lengths; what is repeated and itself has such places counts as many."""
    found = 0
    for op, argument in tree:
        if op in _REPEATS:
            least, most, inside = argument
            if least != sre.MAXREPEAT and max(least, 0 if most == sre.MAXREPEAT else most) > MOST_REPEATED:
                raise PatternError(f"error parsing regexp: invalid repeat count: `{{{least}}}`")
            within = _choices(inside)
            found += 1 + 10 * within if most > 1 else within + (least != most)
        elif op is sre.SUBPATTERN:
            found += _choices(argument[3])
        elif op is sre.BRANCH:
            found += 1 + sum(_choices(branch) for branch in argument[1])
    return found


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
