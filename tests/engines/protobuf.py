"""Objects as Go clients send them: the other way round of what the engine reads, by the same tables."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime
from typing import Any

from herder.server.protobuf.tables import Field, Message, tables

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
Json = dict[str, Any]


def encode(document: Json) -> bytes:
    message = tables().of_kind(document["apiVersion"], document["kind"])
    assert message is not None, document["kind"]
    return envelope(document["apiVersion"], document["kind"], body(message, document))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + chunk(1, chunk(1, api_version.encode()) + chunk(2, kind.encode())) + chunk(2, raw)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, raw: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def body(message: Message, document: Json) -> bytes:
    made = b""
    for field in message.fields.values():
        value = document if field.shape == "inline" else document.get(field.name)
        if value is None:
            continue
        if field.shape == "list":
            made += b"".join(_one(field, field.number, one) for one in value)
        elif field.shape == "map":
            made += b"".join(chunk(field.number, chunk(1, key.encode()) + _one(field, 2, one)) for key, one in value.items())
        else:
            made += _one(field, field.number, value)
    return made


def _one(field: Field, at: int, value: Any) -> bytes:
    if field.kind in ("int32", "int64", "bool"):
        return number(at, int(value))
    if field.kind == "float64":
        return varint(at << 3 | 1) + struct.pack("<d", value)
    return chunk(at, body(field.message, value) if field.message else _special(field.kind, value))


def _special(kind: str, value: Any) -> bytes:
    match kind:
        case "string":
            return value.encode()
        case "bytes":
            return base64.b64decode(value)
        case "Quantity":
            return chunk(1, value.encode())
        case "Json":
            return chunk(1, json.dumps(value).encode())
        case "IntOrString":
            return number(2, value) if isinstance(value, int) else number(1, 1) + chunk(3, value.encode())
        case "Time" | "MicroTime":
            moment = datetime.fromisoformat(value)
            return number(1, int(moment.timestamp())) + number(2, moment.microsecond * 1000)
        case "Strings":
            return b"".join(chunk(1, one.encode()) for one in value)
        case _:
            raise AssertionError(f"no test sends {kind}")
