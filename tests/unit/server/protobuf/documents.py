"""Objects of every kind that comes as protobuf, with fields picked at random from the tables."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from herder.server.protobuf.tables import Field, Message, tables

Strategy = st.SearchStrategy[Any]
KINDS = sorted(tables()._kinds)  # pyright: ignore[reportPrivateUsage]
DEEPEST = 7

_words = st.sampled_from(["", "a", "web-1", "ä €", "line\nbreak", "x" * 200, "<&>", "\u2028", "0"])
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=5,
)
_times = st.sampled_from(["2024-02-29T12:34:56Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", None])
_micro = st.sampled_from(["2024-02-29T12:34:56.000001Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000000Z", None])
_PLAIN: dict[str, Strategy] = {
    "string": _words,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.sampled_from([0.0, 1.5, -2.25, 1e300, 3.0]),
    "bytes": st.binary(max_size=5).map(lambda raw: base64.b64encode(raw).decode()),
    "Time": _times,
    "MicroTime": _micro,
    "Quantity": st.sampled_from(["0", "1", "1500m", "0.5", "1Gi", "100M", "-3", "1e3", "1n"]),
    "IntOrString": st.integers(-(2**31), 2**31 - 1) | st.sampled_from(["50%", "http", ""]),
    "Json": st.dictionaries(_words, _json, max_size=3),
    "Strings": st.lists(_words, max_size=2),
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    version, _, name = kind.rpartition("/")
    message = tables().of_kind(version, name)
    assert message is not None
    return {"apiVersion": version, "kind": name, **draw(_objects(message, 0))}


@st.composite
def _objects(draw: st.DrawFn, message: Message, depth: int) -> dict[str, Any]:
    """A few fields of a message; the deeper, the fewer."""
    fields = list(message.fields.values())
    chosen = draw(st.lists(st.sampled_from(fields), max_size=max(1, 7 - depth), unique=True)) if depth < DEEPEST and fields else []
    made: dict[str, Any] = {}
    for field in chosen:
        value = draw(_values(field, depth + 1))
        if field.shape == "inline":
            made.update(value)
        else:
            made[field.name] = value
    return made


def _values(field: Field, depth: int) -> Strategy:
    one = _one(field, depth)
    if field.shape == "list":
        return st.lists(one, max_size=2)
    if field.shape == "map":
        return st.dictionaries(_words, one, max_size=2)
    return one


def _one(field: Field, depth: int) -> Strategy:
    if field.message is not None:
        return _objects(field.message, depth)
    if not field.kind.startswith("Schema"):
        return _PLAIN[field.kind]
    schema = _objects(tables().messages["apiextensions.v1.JSONSchemaProps"], depth)
    other = {"SchemaOrBool": st.booleans(), "SchemaOrList": st.lists(schema, min_size=1, max_size=2)}
    return schema | other.get(field.kind, st.lists(_words, min_size=1, max_size=2))
