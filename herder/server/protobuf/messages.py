"""From bytes to a document, by the tables. First what was sent, by field number, so that a message that comes in pieces grows
together; then the JSON that Go would make of it, empty values and all."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

from herder.server.protobuf.special import read_special, text_of
from herder.server.protobuf.tables import SPECIAL, Field, Message, tables
from herder.server.protobuf.wire import BYTES, FIXED64, Reader, WireError, signed

Document = dict[str, Any]
Sent = dict[int, Any]


def read_message(message: Message, raw: bytes) -> Document:
    reader = Reader(raw)
    return _shown(message, _sent(message, reader, 0, len(raw), 0, {}))


# --- what was sent ---------------------------------------------------------------------------------------------------------------


def _sent(message: Message, reader: Reader, at: int, end: int, depth: int, sent: Sent) -> Sent:
    reader.message(depth)
    while at < end:
        number, wire, at = reader.tag(at, end)
        field = message.fields.get(number)
        if field is None:
            at = reader.skip(wire, at, end)
        elif wire == field.wire:
            at = _one(field, reader, at, end, depth, sent)
        elif wire == BYTES and field.shape == "list":
            at = _packed(field, reader, at, end, sent)
        else:
            raise WireError(f"wrong wire type {wire} for field {field.name or field.kind} of {message.name}")
    return sent


def _one(field: Field, reader: Reader, at: int, end: int, depth: int, sent: Sent) -> int:
    if field.wire != BYTES:
        value, at = _number(field, reader, at, end)
        _keep(field, value, sent)
        return at
    begin, at = reader.span(at, end)
    if field.shape == "map":
        key, value = _entry(field, reader, begin, at, depth)
        sent.setdefault(field.number, {})[key] = value
    else:
        before = sent.get(field.number) if field.message is not None and field.shape != "list" else None
        _keep(field, _value(field, reader, begin, at, depth, before), sent)
    return at


def _keep(field: Field, value: Any, sent: Sent) -> None:
    if field.shape == "list":
        sent.setdefault(field.number, []).append(value)
    else:
        sent[field.number] = value


def _packed(field: Field, reader: Reader, at: int, end: int, sent: Sent) -> int:
    """Numbers of a list, one behind the other."""
    at, end = reader.span(at, end)
    while at < end:
        reader.field()
        value, at = _number(field, reader, at, end)
        _keep(field, value, sent)
    return at


def _number(field: Field, reader: Reader, at: int, end: int) -> tuple[Any, int]:
    if field.kind == "float64":
        after = reader.skip(FIXED64, at, end)
        return struct.unpack("<d", reader.data[at:after])[0], after
    value, at = reader.varint(at, end)
    if field.kind == "bool":
        return value != 0, at
    return signed(value, 32 if field.kind == "int32" else 64), at


def _value(field: Field, reader: Reader, at: int, end: int, depth: int, before: Sent | None) -> Any:
    kind = field.kind
    if kind == "string":
        return text_of(reader.data[at:end])
    if kind == "bytes":
        return b64encode(reader.data[at:end]).decode()
    if field.message is not None:
        return _sent(field.message, reader, at, end, depth + 1, {} if before is None else before)
    if kind in _CHOICES:
        name, show = _CHOICES[kind]
        return show(_sent(tables().messages[name], reader, at, end, depth + 1, {}))
    assert kind in SPECIAL, kind
    reader.message(depth + 1)
    return read_special(kind, reader, at, end)


def _entry(field: Field, reader: Reader, at: int, end: int, depth: int) -> tuple[str, Any]:
    """One name of a map and its value. What is missing is empty."""
    key, value = "", None
    while at < end:
        number, wire, at = reader.tag(at, end)
        if number > 2:
            at = reader.skip(wire, at, end)
            continue
        if wire != BYTES:
            raise WireError(f"wrong wire type {wire} in an entry of {field.name}")
        begin, at = reader.span(at, end)
        if number == 1:
            key = text_of(reader.data[begin:at])
        else:
            value = _value(field, reader, begin, at, depth, None)
    return key, _value(field, reader, at, at, depth, None) if value is None else value


# --- what is shown of it ---------------------------------------------------------------------------------------------------------


def _shown(message: Message, sent: Sent) -> Document:
    document: Document = {}
    for number, value in sent.items():
        field = message.fields[number]
        if field.shape == "inline":
            continue
        shown = _field(field, value)
        if not (field.left and _empty(field, shown)):
            document[field.name] = shown
    for field in message.always:
        if field.shape == "inline":
            assert field.message is not None
            document.update(_shown(field.message, sent.get(field.number, {})))
        elif field.number not in sent:
            document[field.name] = _shown(field.message, {}) if field.message and field.shape == "value" else field.nothing
    return document


def _field(field: Field, value: Any) -> Any:
    message = field.message
    if message is None:
        return value
    if field.shape == "list":
        return [_shown(message, one) for one in value]
    if field.shape == "map":
        return {key: _shown(message, one) for key, one in value.items()}
    return _shown(message, value)


def _empty(field: Field, shown: Any) -> bool:
    """Only plain values can be empty: whatever has a pointer was meant, and an object by value is always there."""
    if field.shape != "value":
        return False
    if field.left == "zero":
        return shown is None
    return field.kind in ("string", "bytes", "int32", "int64", "bool", "float64") and not shown


# --- the three places where a schema may be something else -----------------------------------------------------------------------


def _schema_or_list(sent: Sent) -> Any:
    schema = tables().messages[_SCHEMA]
    if 2 in sent:
        return [_shown(schema, one) for one in sent[2]]
    return _shown(schema, sent[1]) if 1 in sent else None


def _schema_or_bool(sent: Sent) -> Any:
    return _shown(tables().messages[_SCHEMA], sent[2]) if 2 in sent else sent.get(1, False)


def _schema_or_strings(sent: Sent) -> Any:
    if 2 in sent:
        return sent[2]
    return _shown(tables().messages[_SCHEMA], sent[1]) if 1 in sent else None


_SCHEMA = "apiextensions.v1.JSONSchemaProps"
_CHOICES = {
    "SchemaOrList": ("apiextensions.v1.JSONSchemaPropsOrArray", _schema_or_list),
    "SchemaOrBool": ("apiextensions.v1.JSONSchemaPropsOrBool", _schema_or_bool),
    "SchemaOrStrings": ("apiextensions.v1.JSONSchemaPropsOrStringArray", _schema_or_strings),
}
