"""Types that are known before anything runs: from the schema, from literals, from what functions return."""

from __future__ import annotations

import re
from typing import Final

from herder.server.schema.node import META_FIELDS, Node

_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_UNESCAPED = re.compile(r"__(underscores|dot|dash|slash)__")
_MEANING = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


# Types are known to people by other names than those that `type(x)` gives.
_SHOWN = {"null_type": "null", "google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp"}


class Type:
    """`list(int)`, `map(string, dyn)`, or an object with named fields. `of` holds the types inside."""

    __slots__ = ("fields", "name", "of")

    def __init__(self, name: str, *of: Type, fields: dict[str, Type] | None = None) -> None:
        self.name = name
        self.of = of
        self.fields = fields

    def __str__(self) -> str:
        if self.of:
            return f"{self.name}({', '.join(str(one) for one in self.of)})"
        return _SHOWN.get(self.name, self.name)


DYN: Final = Type("dyn")
BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL = (
    Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type")
)
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")


def list_of(item: Type) -> Type:
    return Type("list", item)


def map_of(key: Type, value: Type) -> Type:
    return Type("map", key, value)


def optional_of(inner: Type) -> Type:
    return Type("optional_type", inner)


def type_of_schema(node: Node, is_resource: bool = False) -> Type | None:
    """What a rule sees of a schema; None for what has no known type, which rules cannot see at all."""
    if node.int_or_string:
        return DYN
    if node.type == "array":
        inner = type_of_schema(node.items, node.items.embedded) if node.items is not None else None
        return list_of(inner) if inner is not None else None
    if node.type == "object":
        return _type_of_object(node, is_resource)
    if node.type == "string":
        return {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}.get(node.format, STRING)
    return {"boolean": BOOL, "number": DOUBLE, "integer": INT}.get(node.type)


def _type_of_object(node: Node, is_resource: bool) -> Type | None:
    if node.additional is not None:
        inner = type_of_schema(node.additional, node.additional.embedded) if node.additional.types else None
        return map_of(STRING, inner) if inner is not None else None
    fields = {
        name: inner
        for name, child in node.properties.items()
        if not (is_resource and name in META_FIELDS) and (inner := type_of_schema(child, child.embedded)) is not None
    }
    if is_resource:
        meta = Type("object", fields={"name": STRING, "generateName": STRING})
        fields = {**fields, "apiVersion": STRING, "kind": STRING, "metadata": meta}
    return Type("object", fields=fields)


def unescaped(name: str) -> str:
    """The field behind a name in an expression: `foo__dash__bar` is `foo-bar`, `__namespace__` is `namespace`."""
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _RESERVED:
        return name[2:-2]
    return _UNESCAPED.sub(lambda match: _MEANING[match[1]], name)


def assignable(given: Type, wanted: Type, variables: dict[str, Type]) -> bool:
    """Whether a value of one type may stand where another is wanted. Single capital letters are filled in on the way."""
    if wanted.name == "dyn" or given.name == "dyn":
        return True
    if len(wanted.name) == 1:
        known = variables.get(wanted.name)
        if known is None or known.name == "dyn":
            variables[wanted.name] = given
            return True
        return assignable(given, known, variables) or _is_null_for(given, known)
    if given.name != wanted.name:
        return False
    if given.fields is not None or wanted.fields is not None:
        return True
    return all(assignable(one, other, variables) for one, other in zip(given.of, wanted.of, strict=True))


def _is_null_for(given: Type, known: Type) -> bool:
    nullable = ("object", "null_type", DURATION.name, TIMESTAMP.name)
    return (given.name == "null_type" and known.name in nullable) or (known.name == "null_type" and given.name in nullable)


def filled(type_: Type, variables: dict[str, Type]) -> Type:
    if len(type_.name) == 1:
        return variables.get(type_.name, DYN)
    return Type(type_.name, *(filled(one, variables) for one in type_.of), fields=type_.fields) if type_.of else type_


def joined(one: Type, other: Type) -> Type:
    """The type of a value that is either of two."""
    if one.name == "null_type":
        return other
    if other.name == "null_type" or assignable(one, other, {}):
        return one
    return DYN


def parse_type(text: str) -> Type:
    """`list(map(string, A))`: how the signatures of functions write types."""
    name, _, rest = text.partition("(")
    if not rest:
        return Type(_SHORT.get(name, name))
    return Type(_SHORT.get(name, name), *(parse_type(one) for one in split_types(rest[:-1])))


_SHORT = {
    "duration": DURATION.name,
    "timestamp": TIMESTAMP.name,
    "optional": "optional_type",
    "null": "null_type",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "semver": "kubernetes.Semver",
    "format": "kubernetes.NamedFormat",
}


def split_types(text: str) -> list[str]:
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def matches_name(type_: Type, name: str) -> bool:
    """Whether a value at hand, whose type has this name, fits; what is inside of lists and maps is not looked at."""
    return type_.name in ("dyn", name) or len(type_.name) == 1 or (type_.name == "object" and name == "map")
