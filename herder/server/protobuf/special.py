"""Messages whose JSON is a single value: times, quantities, numbers that may be words, and JSON that travels as bytes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from herder.server.protobuf.wire import BYTES, VARINT, Reader, WireError, signed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The first second of the year 1, which is how Go says "no time".
ZERO_TIME = -62_135_596_800
LAST_TIME = 253_402_300_799


def read_special(kind: str, reader: Reader, at: int, end: int) -> Any:
    if kind in ("Time", "MicroTime"):
        return _time(reader, at, end, micro=kind == "MicroTime")
    if kind == "Quantity":
        return text_of(_only_bytes(reader, at, end)) or "0"
    if kind == "IntOrString":
        return _int_or_string(reader, at, end)
    if kind == "Json":
        return _json(_only_bytes(reader, at, end))
    return _strings(reader, at, end)


def text_of(raw: bytes) -> str:
    """Go keeps what is not UTF-8, and its JSON replaces it."""
    return raw.decode(errors="replace")


def _numbers(reader: Reader, at: int, end: int) -> dict[int, int | bytes]:
    """The fields of a small message, by number, whatever they are."""
    found: dict[int, int | bytes] = {}
    while at < end:
        number, wire, at = reader.tag(at, end)
        if wire == VARINT:
            found[number], at = reader.varint(at, end)
        elif wire == BYTES:
            begin, at = reader.span(at, end)
            found[number] = reader.data[begin:at]
        else:
            at = reader.skip(wire, at, end)
    return found


def _integer(found: dict[int, int | bytes], number: int, bits: int) -> int:
    value = found.get(number, 0)
    if not isinstance(value, int):
        raise WireError(f"wrong wire type {BYTES} for a number")
    return signed(value, bits)


def _bytes(found: dict[int, int | bytes], number: int) -> bytes:
    value = found.get(number, b"")
    if not isinstance(value, bytes):
        raise WireError(f"wrong wire type {VARINT} for bytes")
    return value


def _only_bytes(reader: Reader, at: int, end: int) -> bytes:
    return _bytes(_numbers(reader, at, end), 1)


def _time(reader: Reader, at: int, end: int, *, micro: bool) -> str | None:
    if at == end:
        return None
    found = _numbers(reader, at, end)
    seconds, nanos = _integer(found, 1, 64), _integer(found, 2, 32)
    micros = int(nanos / 1000) if micro else 0
    if seconds == ZERO_TIME and not micros:
        return None
    if not ZERO_TIME <= seconds + micros // 1_000_000 <= LAST_TIME:
        raise WireError(f"{seconds} seconds since 1970 are beyond the years that can be written")
    moment = EPOCH + timedelta(seconds=seconds, microseconds=micros)
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds")
    return f"{text}Z"


def _int_or_string(reader: Reader, at: int, end: int) -> int | str:
    found = _numbers(reader, at, end)
    which = _integer(found, 1, 64)
    if which == 0:
        return _integer(found, 2, 32)
    if which == 1:
        return text_of(_bytes(found, 3))
    raise WireError("impossible IntOrString.Type")


def _json(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(text_of(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"a field that must hold JSON does not: {error}") from None


def _strings(reader: Reader, at: int, end: int) -> list[str]:
    found: list[str] = []
    while at < end:
        number, wire, at = reader.tag(at, end)
        if number != 1:
            at = reader.skip(wire, at, end)
            continue
        if wire != BYTES:
            raise WireError(f"wrong wire type {wire} for a list of words")
        begin, at = reader.span(at, end)
        found.append(text_of(reader.data[begin:at]))
    return found
