"""Functions on strings, patterns among them."""

from __future__ import annotations

import re
from typing import Any

from herder.api.problems import shown
from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.operators import to_string
from herder.server.schema.cel.values import Duration, Timestamp
from herder.server.schema.patterns import Pattern, PatternError, compile_pattern

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_VERB = re.compile(r"%(?:\.(\d+))?([a-zA-Z%])")


@function("string.startsWith(string) bool")
def _starts_with(text: str, start: str) -> bool:
    return text.startswith(start)


@function("string.endsWith(string) bool")
def _ends_with(text: str, end: str) -> bool:
    return text.endswith(end)


@function("string.contains(string) bool")
def _contains(text: str, part: str) -> bool:
    return part in text


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise CelError(str(error)) from None


@function("string.matches(string) bool", "matches(string, string) bool")
def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).matches(text)


@function("string.find(string) string")
def _find(text: str, pattern: str) -> str:
    try:
        return _pattern(pattern).find(text) or ""
    except PatternError as error:
        raise CelError(str(error)) from None


@function("string.findAll(string) list(string)")
def _find_all(text: str, pattern: str) -> list[str]:
    return _find_some(text, pattern, -1)


@function("string.findAll(string, int) list(string)")
def _find_some(text: str, pattern: str, most: int) -> list[str]:
    try:
        return _pattern(pattern).find_all(text, most)
    except PatternError as error:
        raise CelError(str(error)) from None


@function("string.charAt(int) string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


@function("string.indexOf(string) int", "string.indexOf(string, int) int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@function("string.lastIndexOf(string) int")
def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


@function("string.lastIndexOf(string, int) int")
def _last_index_before(text: str, part: str, end: int) -> int:
    if not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


@function("string.lowerAscii() string")
def _lower(text: str) -> str:
    return "".join(one.lower() if one.isascii() else one for one in text)


@function("string.upperAscii() string")
def _upper(text: str) -> str:
    return "".join(one.upper() if one.isascii() else one for one in text)


@function("string.trim() string")
def _trim(text: str) -> str:
    return text.strip()


@function("string.replace(string, string) string", "string.replace(string, string, int) string")
def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


@function("string.split(string) list(string)", "string.split(string, int) list(string)")
def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not separator:
        whole = list(text)
        return whole if most < 0 or len(whole) <= most else [*whole[: most - 1], "".join(whole[most - 1 :])]
    return text.split(separator, most - 1 if most > 0 else -1)


@function("string.substring(int) string", "string.substring(int, int) string")
def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= last <= len(text):
        raise CelError(f"index out of range: {start if not 0 <= start <= len(text) else last}")
    if start > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


@function("list(string).join() string", "list(string).join(string) string")
def _join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


@function("string.format(list(dyn)) string")
def _format(text: str, values: list[Any]) -> str:
    """`%s %d %.2f`: what cel-go's format knows, each verb taking the next value."""
    taken = iter(values)

    def fill(match: re.Match[str]) -> str:
        precision, verb = match.groups()
        if verb == "%":
            return "%"
        try:
            return _verb(verb, next(taken), precision)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None

    return _VERB.sub(fill, text)


def _verb(verb: str, value: Any, precision: str | None) -> str:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if verb == "s":
        return _shown(value)
    if verb == "d" and is_int:
        return str(int(value))
    if verb == "f" and (is_int or isinstance(value, float)):
        return f"{value:,.{precision or 6}f}"
    if verb == "e" and (is_int or isinstance(value, float)):
        return _scientific(f"{value:.{precision or 6}e}")
    if verb in "bo" and isinstance(value, int):
        return f"{value:{verb}}"
    if verb in "xX" and (is_int or isinstance(value, (str, bytes))):
        text = f"{value:x}" if isinstance(value, int) else (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    raise CelError(f"error during formatting: %{verb} does not fit {_shown(value)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_quoted(one) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_quoted(key)}:{_quoted(one)}" for key, one in value.items())) + "}"
    if isinstance(value, (str, int, float, bytes, Duration, Timestamp)):
        return to_string(value)
    return str(value)


def _quoted(value: Any) -> str:
    """Strings inside of lists and maps are shown in quotes."""
    return shown(value) if isinstance(value, str) else _shown(value)


def _scientific(text: str) -> str:
    """`1.5e+03` as it is printed for people: 1.5 × 10⁰³."""
    digits, _, exponent = text.partition("e")
    return f"{digits}\u202f×\u202f10{exponent.lstrip('+').translate(_RAISED)}"
