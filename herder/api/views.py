"""The tools our typed views are written with: the base Struct, a field's description and limits, and rules that CEL can say.

A view is what we read of an object, never the object itself: unknown fields are dropped, raw bytes stay the truth and writes are
patches. Every default is None, because a default with a value would be lost again when the view is encoded.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

# The JSON forms that Kubernetes accepts for these scalars. A quantity below zero never makes sense in one of our fields.
QUANTITY_PATTERN = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
DURATION_PATTERN = r"^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
PERCENT_PATTERN = r"^(0|[1-9][0-9]*)%$"
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

VALIDATIONS = "x-kubernetes-validations"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Rule(NamedTuple):
    """One CEL rule: what must hold, and the sentence a person reads when it does not."""

    rule: str
    message: str
    expression: str = ""  # CEL that makes the message, where the value at fault should be in it
    field: str = ""  # the field at fault, relative to the object that carries the rule: `.replicas`
    reason: str = "FieldValueInvalid"

    def schema(self) -> dict[str, str]:
        """The rule as a schema holds it."""
        expression = {"messageExpression": self.expression} if self.expression else {}
        path = {"fieldPath": self.field} if self.field else {}
        reason = {"reason": self.reason} if self.reason != "FieldValueInvalid" else {}
        return {"rule": self.rule, "message": self.message, **expression, **path, **reason}


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every view. `kw_only` is not inherited by msgspec, and type checkers want `frozen` repeated: each class says both."""

    # What the schema says of the whole object, beyond its fields.
    RULES: ClassVar[tuple[Rule, ...]] = ()
    # Fields that people write out of habit or from other texts, and what to write instead. They are refused by that sentence.
    REFUSED: ClassVar[tuple[tuple[str, str], ...]] = ()
    # True where the object holds more than we read of it (a pod template) and must be kept whole.
    OPEN: ClassVar[bool] = False


def doc(
    description: str,
    *,
    ge: int | None = None,
    le: int | None = None,
    pattern: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    **schema: Any,
) -> Meta:
    """A field's description, its limits (checked when read, too) and further keys of its schema.

    Keys are written as Python names: `list_keys=("type",)`, `default=3`, `rules=(Rule(…),)`; see `_extra`.
    """
    limits: dict[str, Any] = {"ge": ge, "le": le, "pattern": pattern, "min_length": min_length, "max_length": max_length}
    given = {name: value for name, value in limits.items() if value is not None}
    return Meta(description=description, extra_json_schema=_extra(schema), **given)


def _extra(schema: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "list_keys":
            extra |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(value)}
        elif key == "list_set":
            extra["x-kubernetes-list-type"] = "set"
        elif key == "rules":
            extra[VALIDATIONS] = [rule.schema() for rule in value]
        else:
            extra[_SCHEMA_KEYS[key]] = value
    return extra


_SCHEMA_KEYS = {
    "default": "default",
    "minimum": "minimum",
    "nullable": "nullable",
    "format": "format",
    "required": "required",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "max_items": "maxItems",
    "map_type": "x-kubernetes-map-type",
}

Time = Annotated[datetime.datetime, Meta(tz=True, extra_json_schema={"type": "string", "format": "date-time"})]
MICRO = "microseconds"
MicroTime = Annotated[datetime.datetime, Meta(tz=True, extra_json_schema={"type": "string", "format": "date-time", "title": MICRO})]
Quantity = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "pattern": QUANTITY_PATTERN, "maxLength": 64})]
IntOrPercent = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "pattern": PERCENT_PATTERN, "maxLength": 16})]
IntOrName = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "maxLength": 63})]
Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, max_length=64)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1, extra_json_schema={"format": "int32"})]
Bytes = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
# A value that may have several shapes: kept as it is written and given one shape by the function that reads it.
Untyped = Annotated[Any, Meta(extra_json_schema={PRESERVE: True})]
Labels = Annotated[dict[str, str], Meta(extra_json_schema={"maxProperties": 256})]


def exactly_one(*names: str) -> Rule:
    """One of these fields, and no second one."""
    return _one_of(names, "== 1", "exactly one of")


def at_most_one(*names: str) -> Rule:
    """None or one of these fields."""
    return _one_of(names, "<= 1", "at most one of")


def _one_of(names: tuple[str, ...], test: str, words: str) -> Rule:
    present = ", ".join(f"has(self.{name})" for name in names)
    listed = " + ".join(f"(has(self.{name}) ? ' {name}' : '')" for name in names)
    message = f"must have {words} {', '.join(names)}"
    none = " || ".join(f"has(self.{name})" for name in names)
    expression = f"'{message}, but has ' + (({none}) ? 'these:' : 'none') + {listed}"
    return Rule(f"[{present}].filter(x, x).size() {test}", message, expression)


def unchanging(name: str, advice: str, *, required: bool = False) -> Rule:
    """A field that stays as it was created; `advice` says what to do instead."""
    same = f"self.{name} == oldSelf.{name}"
    rule = same if required else f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"
    return Rule(rule, f"{name} is immutable: {advice}", field=f".{name}")
