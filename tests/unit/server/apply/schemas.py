"""A kind with every form of list and map, and strategies that make configurations of it."""

from typing import Any

from hypothesis import strategies as st

from herder.server.apply import Applier
from herder.server.fields import FieldManager
from herder.server.schema import compile_schema

Json = dict[str, Any]
NUMBER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}
SPEC: Json = {
    "type": "object",
    "properties": {
        "size": NUMBER,
        "map": {"type": "object", "additionalProperties": NUMBER},
        "whole": {"type": "object", "additionalProperties": NUMBER, "x-kubernetes-map-type": "atomic"},
        "inner": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": TEXT, "weight": NUMBER, "note": NUMBER}},
        },
        "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": TEXT},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = compile_schema({"type": "object", "properties": {"spec": SPEC}})
FIELDS = FieldManager(SCHEMA)
NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"

small = st.integers(0, 2)
letters = st.sampled_from("abc")


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


def _map(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.dictionaries(letters, values, min_size=1, max_size=3)


parts = st.lists(
    st.fixed_dictionaries({"name": letters}, optional={"weight": small, "note": small}),
    min_size=1,
    max_size=3,
    unique_by=lambda part: part["name"],
)
specs = _some(
    size=small,
    map=_map(small),
    whole=_map(small),
    inner=_some(a=small, b=small).filter(bool),
    parts=parts,
    tags=st.lists(letters, min_size=1, max_size=3, unique=True),
    list=st.lists(letters, min_size=1, max_size=2),
    free=_map(st.one_of(small, _map(small))),
).filter(bool)


def config(spec: Json | None) -> Json:
    said: Json = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    return said if spec is None else {**said, "spec": spec}


def by(manager: str, now: str = NOW) -> Applier:
    return Applier(manager, "example.com/v1", now)
