"""What is wrong with an object, as a value: which field, which value, and what would be right.

Validation is pure and returns these. The embedded engine and the admission webhook turn them into the same sentences, in the
words that Kubernetes uses, so that a person reads one language on both engines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
NOT_FOUND = "FieldValueNotFound"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"


class Problem(msgspec.Struct, frozen=True, gc=False):
    """One thing wrong with one field. `field` is a path such as `spec.containers[0].name`."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


# Nobody reads more of a value than this, or of more problems: an answer must not be many times as large as what was sent.
LONGEST_SHOWN = 4096
MOST_SHOWN = 100
# How alike two words are is found in the product of their lengths. No field has a longer name.
LONGEST_WORD = 64


def shortened(text: str, longest: int = LONGEST_SHOWN) -> str:
    """The beginning and the end of what is too long to be shown."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}…{text[-(longest // 2) :]}"


_SPELLED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def quoted(text: str) -> str:
    """Text in quotes as Go writes it: nothing that cannot be printed is left, so it may stand in any line, also of a header."""
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"' if text.isprintable() else f'"{printable(text)}"'


def printable(text: str, keep: str = "") -> str:
    """The same text, with what cannot be printed spelled out: what others wrote steers neither a header nor a terminal. `keep`:
    letters that stay as they are."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else _spelled(letter) for letter in text)


def _spelled(letter: str) -> str:
    number = ord(letter)
    if number < 0x80:
        return _SPELLED.get(letter) or f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown(value: Any) -> str:
    """A value as a person typed it: strings in quotes, everything else as JSON. Of a long one the beginning and the end."""
    if isinstance(value, str):
        return shortened(quoted(shortened(value)))
    return shortened(printable(msgspec.json.encode(value).decode()))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """What somebody may have meant: the known word that is most like this one. None where nothing is near."""
    if len(word) > LONGEST_WORD:
        return None
    folded = {one.lower(): one for one in known}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def required(field: str, detail: str = "") -> Problem:
    return Problem(field, REQUIRED, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> Problem:
    return Problem(field, INVALID, f"Invalid value: {shown(value)}: {detail}")


def type_invalid(field: str, value: Any, detail: str) -> Problem:
    return Problem(field, TYPE_INVALID, f"Invalid value: {shown(value)}: {detail}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Problem:
    listed = ", ".join(shown(one) for one in supported)
    return Problem(field, NOT_SUPPORTED, f"Unsupported value: {shown(value)}: supported values: {listed}")


def duplicate(field: str, value: Any) -> Problem:
    return Problem(field, DUPLICATE, f"Duplicate value: {shown(value)}")


def forbidden(field: str, detail: str) -> Problem:
    return Problem(field, FORBIDDEN, f"Forbidden: {detail}")


def not_found(field: str, value: Any) -> Problem:
    return Problem(field, NOT_FOUND, f"Not found: {shown(value)}")


def too_long(field: str, limit: int) -> Problem:
    return Problem(field, TOO_LONG, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> Problem:
    return Problem(field, TOO_MANY, f"Too many: {count}: must have at most {limit} items")
