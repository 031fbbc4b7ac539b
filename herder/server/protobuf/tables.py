"""Which messages there are. `messages.json` is written by tools/kube/protobuf.py."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from herder.server.protobuf.wire import BYTES, FIXED64, VARINT

Shape = Literal["value", "pointer", "list", "map", "inline"]
Left = Literal["", "empty", "zero"]

_WIRE = {"int32": VARINT, "int64": VARINT, "bool": VARINT, "float64": FIXED64}
# What a field of this type shows in JSON where nothing was sent and nothing may be left out.
_NOTHING: dict[str, object] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "bool": False,
    "float64": 0.0,
    "bytes": None,
    "Quantity": "0",
    "IntOrString": 0,
}
# Messages that become one JSON value; the others become objects.
SPECIAL = frozenset(
    {"Time", "MicroTime", "Quantity", "IntOrString", "Json", "Strings", "SchemaOrList", "SchemaOrBool", "SchemaOrStrings"}
)


class Field:
    __slots__ = ("kind", "left", "message", "name", "nothing", "number", "shape", "wire")

    def __init__(self, number: int, name: str, kind: str, shape: Shape, left: Left) -> None:
        self.number = number
        self.name = name
        self.kind = kind
        self.shape: Shape = shape
        self.left: Left = left
        self.wire = BYTES if shape == "map" else _WIRE.get(kind, BYTES)
        self.message: Message | None = None
        self.nothing = None if shape != "value" else _NOTHING.get(kind)

    @property
    def always(self) -> bool:
        """Is it shown even where it was not sent? Go leaves out what is empty, but an object by value is never empty."""
        if self.shape == "inline":
            return True
        if self.shape != "value":
            return not self.left
        return not self.left or (self.left == "empty" and self.wire == BYTES and self.kind not in ("string", "bytes"))


class Message:
    __slots__ = ("always", "fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[int, Field] = {}
        self.always: tuple[Field, ...] = ()


class _File(msgspec.Struct):
    kinds: dict[str, str]
    messages: dict[str, list[tuple[int, str, str, Shape, Left]]]


class Tables:
    def __init__(self, file: _File) -> None:
        self.messages = {name: Message(name) for name in file.messages}
        for name, rows in file.messages.items():
            message = self.messages[name]
            message.fields = {row[0]: Field(*row) for row in rows}
            message.always = tuple(one for one in message.fields.values() if one.always)
            for one in message.fields.values():
                one.message = self.messages.get(one.kind)
        self._kinds = {kind: self.messages[name] for kind, name in file.kinds.items()}

    def of_kind(self, api_version: str, kind: str) -> Message | None:
        if kind == "DeleteOptions":
            # Every group has them, and they are the same in all.
            api_version = "v1"
        return self._kinds.get(f"{api_version}/{kind}")


@cache
def tables() -> Tables:
    """Read when the first such body comes."""
    raw = files("herder.server.protobuf").joinpath("messages.json").read_bytes()
    return Tables(msgspec.json.decode(raw, type=_File))
