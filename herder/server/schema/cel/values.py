"""The values that JSON has no word for, and what it means for any two values to be equal or ordered.

Python's own types stand for the rest: int, float, str, bytes, bool, None, list, dict.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from herder.server.schema.cel.errors import NO_OVERLOAD, CelError

LEAST, MOST = -(2**63), 2**63 - 1
SECOND = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_DURATION = re.compile(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+\Z")
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)\Z")


class Uint(int):
    """A number that cannot be negative, apart from the integers."""


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> Duration:
        if text in ("0", "+0", "-0"):
            return cls(0)
        if not _DURATION.match(text):
            raise CelError(f'invalid duration: "{text}"')
        total = sum(_scaled(number, _UNITS[unit]) for number, unit in _PART.findall(text))
        return cls(-total if text.startswith("-") else total)

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanoseconds), SECOND)
        sign = "-" if self.nanoseconds < 0 else ""
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{sign}{whole}{fraction}s"


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        match = _TIME.match(text)
        try:
            if match is None:
                raise ValueError
            moment = datetime.datetime.fromisoformat(f"{match[1]}T{match[2]}{'+00:00' if match[4] in 'Zz' else match[4]}")
        except ValueError:
            raise CelError(f'invalid timestamp: "{text}"') from None
        return cls(round((moment - _EPOCH).total_seconds()) * SECOND + int((match[3] or "0").ljust(9, "0")[:9]))

    @classmethod
    def of_date(cls, text: str) -> Timestamp:
        return cls.parse(f"{text}T00:00:00Z")

    def moment(self) -> datetime.datetime:
        return _EPOCH + datetime.timedelta(microseconds=self.nanoseconds // 1000)

    def __str__(self) -> str:
        fraction = self.nanoseconds % SECOND
        return f"{self.moment():%Y-%m-%dT%H:%M:%S}{f'.{fraction:09d}'.rstrip('0') if fraction else ''}Z"


class Optional:
    """A value that may not be there."""

    __slots__ = ("has", "value")

    def __init__(self, has: bool, value: Any = None) -> None:
        self.has = has
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optional) and self.has == other.has and (not self.has or equal(self.value, other.value))

    __hash__ = None  # type: ignore[assignment]


NONE = Optional(False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What `type(x)` gives."""

    name: str


class SetList(list[Any]):
    """A list whose order does not matter (`x-kubernetes-list-type: set`)."""


class MapList(list[Any]):
    """A list of objects told apart by keys, in any order (`x-kubernetes-list-type: map`)."""

    keys: tuple[str, ...] = ()


_NAMES: dict[type, str] = {
    int: "int",
    bool: "bool",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    type(None): "null_type",
    Uint: "uint",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
}


def register_type(kind: type, name: str) -> None:
    """A library's own type, such as Quantity."""
    _NAMES[kind] = name


def type_name(value: Any) -> str:
    return _NAMES[type(value)]


def equal(left: Any, right: Any) -> bool:
    """Numbers are equal across their types, other values of different types never are."""
    kind = type(left)
    if kind is type(right) and kind in (str, int, bool, bytes):
        return bool(left == right)
    if kind in _NUMBERS and type(right) in _NUMBERS:
        return bool(left == right)
    if kind is dict and isinstance(right, dict):
        return _maps_equal(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return _lists_equal(left, right)
    return kind is type(right) and bool(left == right)


_NUMBERS = (int, float, Uint)


def _maps_equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    return len(left) == len(right) and all(key in right and equal(one, right[key]) for key, one in left.items())


def _lists_equal(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, (SetList, MapList)) or isinstance(right, (SetList, MapList)):
        rest = list(right)
        for one in left:
            place = next((index for index, other in enumerate(rest) if equal(one, other)), None)
            if place is None:
                return False
            del rest[place]
        return True
    return all(equal(one, other) for one, other in zip(left, right, strict=True))


def compare(left: Any, right: Any) -> int:
    """-1, 0, 1; an error where the two have no order."""
    kinds = (type(left), type(right))
    if not (kinds[0] is kinds[1] and kinds[0] in _ORDERED) and not (kinds[0] in _NUMBERS and kinds[1] in _NUMBERS):
        raise CelError(NO_OVERLOAD)
    return (left > right) - (left < right)


_ORDERED = (int, float, Uint, str, bytes, bool, Duration, Timestamp)


def is_in(item: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return _has_key(holder, item)
    if isinstance(holder, list):
        return any(equal(item, one) for one in holder)
    raise CelError(NO_OVERLOAD)


def _has_key(holder: dict[Any, Any], key: Any) -> bool:
    try:
        return key in holder
    except TypeError:
        raise CelError(NO_OVERLOAD) from None


def checked(number: int) -> int:
    """An integer that fits 64 bits, or an error."""
    if not LEAST <= number <= MOST:
        raise CelError("integer overflow")
    return number
