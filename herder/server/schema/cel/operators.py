"""Arithmetic, comparison, conversion: the functions that every expression may use."""

from __future__ import annotations

import math
from typing import Any

from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import (
    LEAST,
    MOST,
    Duration,
    MapList,
    SetList,
    Timestamp,
    TypeValue,
    Uint,
    checked,
    compare,
    equal,
    is_in,
    type_name,
)

_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", "string", "bytes", "duration", "timestamp")


def _ordered(operator: str) -> list[str]:
    same = [f"_{operator}_({one}, {one}) bool" for one in _ORDERED]
    return same + [f"_{operator}_({one}, {other}) bool" for one in _NUMBERS for other in _NUMBERS]


@function("_==_(A, A) bool")
def _equal(left: Any, right: Any) -> bool:
    return equal(left, right)


@function("_!=_(A, A) bool")
def _different(left: Any, right: Any) -> bool:
    return not equal(left, right)


@function(*_ordered("<"))
def _less(left: Any, right: Any) -> bool:
    return compare(left, right) < 0


@function(*_ordered("<="))
def _at_most(left: Any, right: Any) -> bool:
    return compare(left, right) <= 0


@function(*_ordered(">"))
def _more(left: Any, right: Any) -> bool:
    return compare(left, right) > 0


@function(*_ordered(">="))
def _at_least(left: Any, right: Any) -> bool:
    return compare(left, right) >= 0


@function("@in(A, list(A)) bool", "@in(A, map(A, B)) bool")
def _in(item: Any, holder: Any) -> bool:
    return is_in(item, holder)


@function("!_(bool) bool")
def _not(value: bool) -> bool:
    return not value


@function("-_(int) int")
def _negative(value: int) -> int:
    return checked(-value)


@function("-_(double) double")
def _negative_double(value: float) -> float:
    return -value


@function("_+_(int, int) int")
def _add(left: int, right: int) -> int:
    return checked(left + right)


@function("_+_(uint, uint) uint")
def _add_unsigned(left: Uint, right: Uint) -> Uint:
    return _unsigned(int(left) + int(right))


@function("_+_(double, double) double", "_+_(string, string) string", "_+_(bytes, bytes) bytes")
def _join(left: Any, right: Any) -> Any:
    return left + right


@function("_+_(list(A), list(A)) list(A)")
def _join_lists(left: list[Any], right: list[Any]) -> list[Any]:
    """Sets and maps keep what they have, in its place, and take what is new."""
    if isinstance(left, SetList):
        return SetList([*left, *(one for one in right if not is_in(one, left))])
    if isinstance(left, MapList):
        return _merge(left, right)
    return [*left, *right]


def _merge(left: MapList, right: list[Any]) -> MapList:
    replaced = {tuple(one.get(key) for key in left.keys): one for one in right}
    merged = MapList([replaced.pop(tuple(one.get(key) for key in left.keys), one) for one in left] + list(replaced.values()))
    merged.keys = left.keys
    return merged


@function("_+_(duration, duration) duration")
def _add_durations(left: Duration, right: Duration) -> Duration:
    return Duration(checked(left.nanoseconds + right.nanoseconds))


@function("_+_(timestamp, duration) timestamp", "_+_(duration, timestamp) timestamp")
def _later(left: Any, right: Any) -> Timestamp:
    return Timestamp(left.nanoseconds + right.nanoseconds)


@function("_-_(timestamp, duration) timestamp")
def _earlier(left: Timestamp, right: Duration) -> Timestamp:
    return Timestamp(left.nanoseconds - right.nanoseconds)


@function("_-_(timestamp, timestamp) duration", "_-_(duration, duration) duration")
def _between(left: Any, right: Any) -> Duration:
    return Duration(checked(left.nanoseconds - right.nanoseconds))


@function("_-_(int, int) int")
def _subtract(left: int, right: int) -> int:
    return checked(left - right)


@function("_-_(uint, uint) uint")
def _subtract_unsigned(left: Uint, right: Uint) -> Uint:
    return _unsigned(int(left) - int(right))


@function("_-_(double, double) double")
def _subtract_doubles(left: float, right: float) -> float:
    return left - right


@function("_*_(int, int) int")
def _multiply(left: int, right: int) -> int:
    return checked(left * right)


@function("_*_(uint, uint) uint")
def _multiply_unsigned(left: Uint, right: Uint) -> Uint:
    return _unsigned(int(left) * int(right))


@function("_*_(double, double) double")
def _multiply_doubles(left: float, right: float) -> float:
    return left * right


@function("_/_(int, int) int")
def _divide(left: int, right: int) -> int:
    """Towards zero, as machines do it, not downwards as Python does."""
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return checked(quotient if (left < 0) == (right < 0) else -quotient)


@function("_/_(uint, uint) uint")
def _divide_unsigned(left: Uint, right: Uint) -> Uint:
    return Uint(_divide(int(left), int(right)))


@function("_/_(double, double) double")
def _divide_doubles(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


@function("_%_(int, int) int", "_%_(uint, uint) uint")
def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    rest = abs(left) % abs(right)
    return type(left)(-rest if left < 0 else rest)


def _unsigned(value: int) -> Uint:
    if not 0 <= value < 2**64:
        raise CelError("unsigned integer overflow")
    return Uint(value)


@function("size(string) int", "size(bytes) int", "size(list(A)) int", "size(map(A, B)) int")
@function("string.size() int", "bytes.size() int", "list(A).size() int", "map(A, B).size() int")
def _size(value: Any) -> int:
    return len(value)


@function("type(A) type")
def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


@function("dyn(A) dyn")
def _dyn(value: Any) -> Any:
    return value


@function("bool(bool) bool", "bool(string) bool")
def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError(f"type conversion error from 'string' to 'bool': {value}")


@function("int(int) int", "int(uint) int", "int(double) int", "int(string) int", "int(timestamp) int")
def _int(value: Any) -> int:
    if isinstance(value, Timestamp):
        return value.nanoseconds // 1_000_000_000
    if isinstance(value, float):
        if not math.isfinite(value) or not LEAST < value < MOST:
            raise CelError("integer overflow")
        return int(value)
    try:
        return checked(int(value) if not isinstance(value, str) else _strict_int(value))
    except ValueError:
        raise CelError("type conversion error from 'string' to 'int'") from None


def _strict_int(text: str) -> int:
    if not text.lstrip("+-").isascii() or not text.lstrip("+-").isdigit():
        raise ValueError
    return int(text)


@function("uint(uint) uint", "uint(int) uint", "uint(double) uint", "uint(string) uint")
def _uint(value: Any) -> Uint:
    return _unsigned(_int(value) if not isinstance(value, Uint) else int(value))


@function("double(double) double", "double(int) double", "double(uint) double", "double(string) double")
def _double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise CelError("type conversion error from 'string' to 'double'") from None


@function("bytes(string) bytes", "bytes(bytes) bytes")
def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


@function(*(f"string({one}) string" for one in ("string", "int", "uint", "double", "bool", "bytes", "timestamp", "duration")))
def _string(value: Any) -> str:
    return to_string(value)


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return str(value)


@function("duration(string) duration", "duration(duration) duration")
def _duration(value: Any) -> Duration:
    return Duration.parse(value) if isinstance(value, str) else value


@function("timestamp(string) timestamp", "timestamp(timestamp) timestamp", "timestamp(int) timestamp")
def _timestamp(value: Any) -> Timestamp:
    if isinstance(value, int):
        return Timestamp(value * 1_000_000_000)
    return Timestamp.parse(value) if isinstance(value, str) else value
