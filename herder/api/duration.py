"""Lengths of time as Go writes them: `1h30m`, `300ms`, `-1.5s`. A length is a whole number of nanoseconds."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_UNITS: Final = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # U+00B5, the micro sign
    "μs": MICROSECOND,  # U+03BC, the Greek letter
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_LIMIT: Final = 1 << 63
_PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


def parse_duration(text: str) -> int:
    """Nanoseconds; ValueError in Go's words when `text` is not a length of time."""
    if len(text) > 1000:
        raise ValueError("time: invalid duration: more than 1000 characters")
    return _parse(text)


def parse_seconds(text: str) -> float:
    """The same in seconds, for timers."""
    return parse_duration(text) / SECOND


@lru_cache(maxsize=1024)
def _parse(text: str) -> int:
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise _invalid(text)
    total = 0
    at = 0
    while at < len(rest):
        match = _PIECE.match(rest, at)
        assert match is not None  # every part of the pattern may be empty
        total += _piece(text, match[1], match[2], match[3])
        if total > _LIMIT:
            raise _invalid(text)
        at = match.end()
    if text[0] == "-":
        return -total
    if total >= _LIMIT:
        raise _invalid(text)
    return total


def _piece(text: str, number: str, fraction: str | None, unit_name: str) -> int:
    if not number and not fraction:
        raise _invalid(text)
    whole = int(number or "0")
    if whole > _LIMIT:
        raise _invalid(text)
    if not unit_name:
        raise ValueError(f"time: missing unit in duration {_quoted(text)}")
    unit = _UNITS.get(unit_name)
    if unit is None:
        raise ValueError(f"time: unknown unit {_quoted(unit_name)} in duration {_quoted(text)}")
    if whole > _LIMIT // unit:
        raise _invalid(text)
    nanos = whole * unit + _fraction_nanos(fraction or "", unit)
    if nanos > _LIMIT:
        raise _invalid(text)
    return nanos


def _fraction_nanos(digits: str, unit: int) -> int:
    """Go computes this part in floating point; digits past 64 bits are dropped there, and so here."""
    amount = 0
    scale = 1.0
    for digit in digits:
        if amount > (_LIMIT - 1) // 10:
            break
        longer = amount * 10 + int(digit)
        if longer > _LIMIT:
            break
        amount = longer
        scale *= 10
    return int(float(amount) * (float(unit) / scale))


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {_quoted(text)}")


def _quoted(text: str) -> str:
    shown = []
    for letter in text:
        if " " <= letter < "\x80":
            shown.append("\\" + letter if letter in '"\\' else letter)
        else:
            shown.extend(f"\\x{byte:02x}" for byte in letter.encode(errors="surrogatepass"))
    return '"' + "".join(shown) + '"'


def format_duration(nanos: int) -> str:
    """The shortest exact spelling, as Go prints it: `1h30m0s`, `1.5s`, `300ms`, `0s`."""
    sign = "-" if nanos < 0 else ""
    nanos = abs(nanos)
    if nanos < SECOND:
        return sign + _below_a_second(nanos)
    minutes, seconds = divmod(nanos, MINUTE)
    shown = _with_fraction(seconds, SECOND) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        shown = f"{hours}h{minutes}m{shown}" if hours else f"{minutes}m{shown}"
    return sign + shown


def _below_a_second(nanos: int) -> str:
    if nanos == 0:
        return "0s"
    if nanos < MICROSECOND:
        return f"{nanos}ns"
    if nanos < MILLISECOND:
        return _with_fraction(nanos, MICROSECOND) + "µs"
    return _with_fraction(nanos, MILLISECOND) + "ms"


def _with_fraction(nanos: int, unit: int) -> str:
    whole, rest = divmod(nanos, unit)
    if not rest:
        return str(whole)
    width = len(str(unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0")


def format_seconds(seconds: float) -> str:
    """As Kubernetes writes it: `5m0s`."""
    return format_duration(round(seconds * SECOND))
