"""Amounts of resources: `500m`, `1.5Gi`, `2e3`. Read and written exactly as Kubernetes reads and writes them.

An amount is held as a whole number of billionths: Kubernetes rounds everything finer up to one billionth, so nothing is lost
and sums and comparisons are integer arithmetic. Two differences, both where Kubernetes itself goes wrong: an amount past the
64-bit range keeps its value (there it wraps or becomes 0), and amounts of more than 1,000 digits are refused (there they
eat the memory).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_SPLIT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_WRONG_FORM: Final = f"quantities must match the regular expression '{_SPLIT}'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

_PARTS = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_OF_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_ORDER: Final = ("", *_BINARY_SUFFIXES)

_NANOS: Final = 10**9
_MAX_INT64: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 1000


class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An amount, never changed once made. Equal when the amounts are equal, however they were written."""

    nanos: int
    format: str = DECIMAL_SI
    text: str = ""

    def __str__(self) -> str:
        return self.text or canonical(self.nanos, self.format)

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, written like the left side; a zero on the left takes the other's way of writing."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.format)

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    def value(self) -> int:
        """The amount as a whole number, rounded away from zero."""
        return _divide_up(self.nanos, _NANOS)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero: `0.5` is 500."""
        return _divide_up(self.nanos, 1_000_000)


ZERO: Final = Quantity(0, DECIMAL_SI, "0")


def parse_quantity(source: str | int | float) -> Quantity:
    """The amount that a JSON value stands for; ValueError says what is wrong with it.

    Blanks around it are dropped, as Kubernetes drops them when it decodes JSON.
    """
    if isinstance(source, str):
        return _parse(source) if len(source) <= _MAX_DIGITS else _too_long()
    if isinstance(source, bool):
        raise ValueError(_WRONG_FORM)
    return _parse(repr(source))


def of(value: int, format: str = DECIMAL_SI) -> Quantity:
    """A whole amount."""
    return Quantity(value * _NANOS, format)


def of_milli(thousandths: int, format: str = DECIMAL_SI) -> Quantity:
    """An amount given in thousandths: 500 is half."""
    return Quantity(thousandths * 1_000_000, format)


def canonical(nanos: int, format: str) -> str:
    """How Kubernetes writes the amount: no fraction, the largest suffix that keeps it whole."""
    if nanos == 0:
        return "0"
    if format == BINARY_SI:
        whole, rest = divmod(abs(nanos), _NANOS)
        # Below 1024 and where a fraction would be lost, the decimal form is clearer.
        if whole >= 1024 and not rest:
            return _canonical_binary(whole, nanos < 0)
        format = DECIMAL_SI
    return _canonical_decimal(nanos, format)


def _canonical_binary(whole: int, negative: bool) -> str:
    power = 0
    while whole >= 1024 and whole % 1024 == 0 and power < 6:
        whole //= 1024
        power += 1
    return f"{'-' if negative else ''}{whole}{_BINARY_ORDER[power]}"


def _canonical_decimal(nanos: int, format: str) -> str:
    exponent = -9
    while nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if format == DECIMAL_SI and exponent in _SUFFIX_OF_EXPONENT:
        return f"{nanos}{_SUFFIX_OF_EXPONENT[exponent]}"
    # Past E there is no suffix; Kubernetes drops it and with it the size, so the exponent is written instead.
    return f"{nanos}e{exponent}" if exponent else str(nanos)


def _divide_up(amount: int, by: int) -> int:
    return -(-amount // by) if amount >= 0 else amount // by


def _too_long() -> Quantity:
    raise ValueError(f"quantities of more than {_MAX_DIGITS} characters are not supported")


class _Written(NamedTuple):
    """The parts of a spelling."""

    text: str
    negative: bool
    number: str
    fraction: str
    exponent: int
    format: str
    short: bool


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    text = text.strip(" ")
    if text == "0":
        return ZERO
    match = _PARTS.fullmatch(text) if text else None
    if match is None:
        raise ValueError(_WRONG_FORM)
    sign, zeros, number, fraction, suffix = match.groups(default="")
    # "0", "00", "-0" and even "-" are zero to Kubernetes.
    number = number or "0"
    if suffix in _BINARY_SUFFIXES:
        exponent, format = _BINARY_SUFFIXES[suffix], BINARY_SI
        # Kubernetes decides by this sum whether 64 bits are surely enough; only then may the spelling be kept.
        short = not fraction and 15 - len(number) - exponent * 3 // 10 - 1 >= 0
    else:
        exponent = _decimal_exponent(suffix)
        format = DECIMAL_SI if suffix in _DECIMAL_SUFFIXES else DECIMAL_EXPONENT
        short = len(number) + len(fraction) <= 18 and exponent - len(fraction) >= -9
    if not short and not (zeros or fraction or match[3]):
        raise ValueError(_WRONG_NUMBER)
    read = _read_binary if format == BINARY_SI else _read_decimal
    return read(_Written(text, sign == "-", number, fraction, exponent, format, short))


def _decimal_exponent(suffix: str) -> int:
    if suffix in _DECIMAL_SUFFIXES:
        return _DECIMAL_SUFFIXES[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise ValueError(_WRONG_SUFFIX)
    exponent = int(match[1])
    if not -(1 << 63) <= exponent < 1 << 63:
        raise ValueError(_WRONG_SUFFIX)
    return (exponent + (1 << 31)) % (1 << 32) - (1 << 31)  # Kubernetes keeps 32 bits of it


def _read_decimal(written: _Written) -> Quantity:
    digits = written.number + written.fraction
    scale = written.exponent - len(written.fraction)
    nanos = _to_nanos(int(digits), scale)
    if written.negative:
        nanos = -nanos
    # What is short enough and already canonical keeps its spelling, down to "+5" and "1.500".
    kept = written.short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(nanos, written.format, written.text if kept else canonical(nanos, written.format))


def _to_nanos(amount: int, scale: int) -> int:
    shift = scale + 9
    if amount == 0:
        return 0
    if shift >= 0:
        if shift > _MAX_DIGITS:
            raise ValueError("quantities of more than 1000 digits are not supported")
        return amount * 10**shift
    if -shift > _MAX_DIGITS:
        return 1  # whoever asks for something gets something
    return -(-amount // 10**-shift)


def _read_binary(written: _Written) -> Quantity:
    scaled = int(written.number + written.fraction) << written.exponent
    nanos = _to_nanos(scaled, -len(written.fraction))
    format = BINARY_SI
    if not written.short:
        nanos = min(nanos, _MAX_INT64 * _NANOS)
        format = DECIMAL_SI if 0 < nanos < _NANOS else BINARY_SI
    if written.negative:
        nanos = -nanos
    kept = written.short and int(written.number) & 7
    return Quantity(nanos, format, written.text if kept else canonical(nanos, format))
