"""Field selectors as text: `metadata.name=a,status.phase!=Running`. Commas, equals signs and backslashes in values are escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

_NO_FIELDS: Final[Mapping[str, str]] = {}
_OPERATOR = re.compile(r"!=|==|=")
_TO_ESCAPE = re.compile(r"[\\,=]")


class FieldRequirement(msgspec.Struct, frozen=True, gc=False):
    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape_value(self.value)}"


class FieldSelector:
    """All of its requirements must hold. A field that an object does not have counts as empty."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[FieldRequirement]) -> None:
        self.requirements = tuple(requirements)

    def matches(self, fields: Mapping[str, str] | None) -> bool:
        get = (_NO_FIELDS if fields is None else fields).get
        return all((get(one.field, "") == one.value) is one.equal for one in self.requirements)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def exact_value(self, field: str) -> str | None:
        """The one value that it demands of a field, if it does; for indexes."""
        return next((one.value for one in self.requirements if one.equal and one.field == field), None)

    def fields(self) -> tuple[str, ...]:
        return tuple(one.field for one in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(one) for one in self.requirements)

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"


ALL_FIELDS: Final = FieldSelector(())


def escape_value(value: str) -> str:
    return _TO_ESCAPE.sub(r"\\\g<0>", value)


def unescape_value(text: str) -> str:
    """ValueError for a lone backslash, and for a comma or an equals sign without one."""
    if not _TO_ESCAPE.search(text):
        return text
    found: list[str] = []
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            letter = next(letters, "")
            if letter not in ("\\", ",", "="):
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{letter}")
        elif letter in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(letter)}")
        found.append(letter)
    return "".join(found)


def parse_field_selector(text: str, check: Callable[[str, str], None] | None = None) -> FieldSelector:
    """ValueError in Kubernetes' words when the text is no field selector.

    `check(field, value)` may refuse a field that the kind does not offer, by raising ValueError.
    """
    found: list[FieldRequirement] = []
    for term in sorted(_split_terms(text)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value = term[: operator.start()], unescape_value(term[operator.end() :])
        if check is not None:
            check(field, value)
        if field or value:  # "=" alone asks for nothing
            found.append(FieldRequirement(field, operator[0] != "!=", value))
    return FieldSelector(found)


def _split_terms(text: str) -> list[str]:
    terms: list[str] = []
    start = 0
    escaped = False
    for at, letter in enumerate(text):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ",":
            terms.append(text[start:at])
            start = at + 1
    terms.append(text[start:])
    return terms
