"""The cheap yes: msgspec decodes the bytes against types made from the schema, in C, and refuses unknown fields and wrong types.

A yes is certain. A no means nothing yet: the slow and exact walkers say what is wrong, if anything is.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from herder.server.schema.node import Node

_INT32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_QUANTITY = Annotated[str, Meta(pattern=r"^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?\Z")]
_TIME = Annotated[
    str, Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
]
_ANYTHING = cast(Any, Any)


class Recursive(Exception):
    """The schema contains itself: there is no finite type for it."""


def decoder_for(root: Node) -> msgspec.json.Decoder[Any] | None:
    """A decoder that accepts only what has no unknown fields and no wrong types; None where the schema has no such type."""
    try:
        return msgspec.json.Decoder(_Types().of(root))
    except (Recursive, RecursionError, ValueError, TypeError):
        # Also names of fields that no type of ours can have.
        return None


class _Types:
    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.open: set[int] = set()
        self.counter = itertools.count()

    def of(self, node: Node) -> Any:
        if id(node) in self.open:
            raise Recursive
        if id(node) not in self.known:
            self.open.add(id(node))
            made = self._make(node)
            self.known[id(node)] = made | None if node.nullable and made is not _ANYTHING else made
            self.open.discard(id(node))
        return self.known[id(node)]

    def _make(self, node: Node) -> Any:
        if node.int_or_string:
            return (_INT32 if node.builtin else _INT64) | str
        if node.types == ("string", "number"):
            return _QUANTITY | _INT64 | float
        if node.type == "string":
            return _string(node)
        if node.type == "integer":
            return _INT32 if node.format == "int32" else _INT64
        if node.type == "boolean":
            return bool
        if node.type == "number":
            return float
        if node.type == "array":
            return list[self.of(node.items)] if node.items is not None else list[Any]
        return self._object(node) if node.type == "object" else self._untyped(node)

    def _untyped(self, node: Node) -> Any:
        if not (node.properties or node.items or node.additional) and node.preserve:
            return _ANYTHING
        # Whether anything unknown is inside cannot be said without its type: a type that nothing fits asks for the slow walk.
        return Literal["\0 no value is like this"]

    def _object(self, node: Node) -> Any:
        if node.properties:
            return self._struct(node)
        if node.additional is not None:
            return dict[str, self.of(node.additional)]
        return dict[str, Any] if node.preserve else self._struct(node)

    def _struct(self, node: Node) -> Any:
        """Fields are numbered, since their names in the schema need not be names in Python."""
        if node.additional is not None:
            return Literal["\0 no value is like this"]
        names = {f"f{index}": name for index, name in enumerate(node.properties)}
        fields = [(field, self.of(node.properties[name]), None) for field, name in names.items()]
        return msgspec.defstruct(
            f"Type{next(self.counter)}",
            fields,
            rename=names,
            forbid_unknown_fields=not node.preserve,
            gc=False,
        )


def _string(node: Node) -> Any:
    if not node.builtin:
        return str
    if node.format == "date-time":
        return _TIME
    return bytes if node.format == "byte" else str
