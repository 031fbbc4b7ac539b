"""From a typed view to the structural schema that an API server checks its objects by.

The rules are those of apiextensions.k8s.io/v1: a type on every node (or a mark that there is none), no references, properties
rather than tagged unions, and validations beyond that in CEL.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from msgspec import inspect

from herder.api.views import PRESERVE, VALIDATIONS, Rule, View

Schema = dict[str, Any]

_INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")
_ROOT_DESCRIPTIONS = {
    "apiVersion": "Group and version of the kind, as group/version.",
    "kind": "Name of the kind.",
}


def schema_of_kind(view: type[View]) -> Schema:
    """The schema of a whole object: spec and status from the view, the rest as every kind has it."""
    schema = _struct(_struct_type(view))
    properties = schema["properties"]
    for name, description in _ROOT_DESCRIPTIONS.items():
        properties[name] = {"description": description, "type": "string"}
    properties["metadata"] = {"type": "object"}
    required = [name for name in schema.get("required", []) if name not in _ROOT_FIELDS]
    return _without_empty({**schema, "properties": properties, "required": required})


def schema_of(view: type[View]) -> Schema:
    """The schema of one part, for example of a spec."""
    return _struct(_struct_type(view))


# The types do not change while the program runs, and to look through them takes most of the time that a schema takes.
@functools.cache
def _struct_type(view: type[View]) -> inspect.StructType:
    return cast(inspect.StructType, inspect.type_info(view))


def _struct(info: inspect.StructType) -> Schema:
    view: type[View] = info.cls  # pyright: ignore[reportAssignmentType]: every Struct that a kind is made of is a View
    properties = {one.encode_name: _node(one.type) for one in info.fields}
    refused = dict(view.REFUSED) | {_capital(name): f"unknown field: did you mean {name}?" for name in view.CAPITALS}
    shapes = {_capital(name): _shape(properties[name]) for name in view.CAPITALS}
    for name, advice in refused.items():
        properties[name] = {"description": f"Refused: {advice.rstrip('?')}.", **shapes.get(name, _INT_OR_STRING)}
    by_rule = dict(view.REQUIRED)
    schema: Schema = {
        "description": _sentence(view),
        "type": "object",
        "properties": properties,
        "required": [one.encode_name for one in info.fields if one.required and one.encode_name not in by_rule],
        VALIDATIONS: [
            *(rule.schema() for rule in view.RULES),
            *(_requirement(name, advice) for name, advice in by_rule.items()),
            *(_refusal(name, advice) for name, advice in refused.items()),
        ],
        PRESERVE: view.OPEN,
    }
    return _without_empty(schema)


def _sentence(view: type[View]) -> str:
    return " ".join((view.__doc__ or "").split())


def _without_empty(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if value not in ([], {}, False) or key == "default"}


def _refusal(name: str, advice: str) -> Schema:
    return Rule(f"!has(self.{name})", advice, field=f".{name}", reason="FieldValueForbidden").schema()


def _requirement(name: str, advice: str) -> Schema:
    return Rule(f"has(self.{name})", advice, field=f".{name}", reason="FieldValueRequired").schema()


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _shape(schema: Schema) -> Schema:
    """As little as lets a rule see that the field is there: of an untyped one it would not."""
    if schema.get("type") == "object":
        return {"type": "object", PRESERVE: True}
    return {"type": "boolean"} if schema.get("type") == "boolean" else _INT_OR_STRING


def _node(info: inspect.Type) -> Schema:
    """The schema of one field's type, with what its Meta says laid over what its type says."""
    if isinstance(info, inspect.Metadata):
        return _overlaid(_node(info.type), dict(info.extra_json_schema or {}))
    if isinstance(info, inspect.UnionType):
        return _union(info)
    if isinstance(info, inspect.StructType):
        return _struct(info)
    if isinstance(info, inspect.DictType):
        return {"type": "object", "additionalProperties": _node(info.value_type)}
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        limits = {"minItems": info.min_length, "maxItems": info.max_length}
        return {"type": "array", "items": _node(info.item_type), "x-kubernetes-list-type": "atomic", **_given(limits)}
    return _scalar(info)


def _overlaid(schema: Schema, extra: Schema) -> Schema:
    if extra.get(PRESERVE):
        schema = {}
    if extra.get("x-kubernetes-int-or-string"):
        schema = {key: value for key, value in schema.items() if key != "type"}
    merged = {**schema, **extra}
    if VALIDATIONS in merged:
        merged[VALIDATIONS] = [*schema.get(VALIDATIONS, []), *extra.get(VALIDATIONS, [])]
    return _ordered(merged)


def _ordered(schema: Schema) -> Schema:
    """The description first: it is what people read."""
    description = schema.pop("description", None)
    return schema if description is None else {"description": description, **schema}


def _union(info: inspect.UnionType) -> Schema:
    """`T | None` is T, not required; `int | str` gets its marks from the Meta around it."""
    others = [one for one in info.types if not isinstance(one, inspect.NoneType)]
    return _node(others[0]) if len(others) == 1 else {}


def _scalar(info: inspect.Type) -> Schema:
    if isinstance(info, inspect.StrType):
        limits = {"minLength": info.min_length, "maxLength": info.max_length, "pattern": info.pattern}
        return {"type": "string", **_given(limits)}
    if isinstance(info, inspect.IntType):
        return {"type": "integer", **_given({"minimum": info.ge, "maximum": info.le})}
    if isinstance(info, inspect.BoolType):
        return {"type": "boolean"}
    if isinstance(info, inspect.LiteralType):
        return {"type": "string", "enum": [str(one) for one in info.values]}
    if isinstance(info, inspect.DateTimeType):
        return {"type": "string", "format": "date-time"}
    if isinstance(info, inspect.AnyType):
        return {}
    raise TypeError(f"a view has a field of a type that no schema can be made of: {info}")


def _given(limits: dict[str, Any]) -> Schema:
    return {name: value for name, value in limits.items() if value is not None}
