"""The tools our typed views are written with: the base Struct, a field's description and limits, and rules that CEL can say.

A view is what we read of an object, never the object itself: unknown fields are dropped, raw bytes stay the truth and writes are
patches. Every default is None, because a default with a value would be lost again when the view is encoded.
"""

from __future__ import annotations

import datetime
import json
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

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


def spelled(pattern: str, words: str) -> Rule:
    """A text of this form. A `pattern` of the schema would be answered with the expression alone: this with what it stands for."""
    return Rule(f"self.matches({json.dumps(pattern)})", f"must be {words}")


# The JSON forms that Kubernetes accepts for these scalars. A quantity below zero never makes sense in one of our fields.
_QUANTITY_PATTERN = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_QUANTITY = Rule(
    f"type(self) == int ? self >= 0 : string(self).matches({json.dumps(_QUANTITY_PATTERN)})",
    "must be an amount that is not below zero: a number, or a number with a unit such as 500m, 2, 512Mi or 2Gi",
)
QUANTITY_RULES = [_QUANTITY.schema()]
_DURATION = spelled(
    r"^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$", "a length of time, not below zero, such as 90s, 5m or 1h30m"
)
_PERCENT = Rule(
    'type(self) == int || string(self).matches("^(0|[1-9][0-9]*)%$")', "must be a whole number, or a percentage such as 25%"
)
_PORT = Rule(
    'type(self) == int ? self >= 1 && self <= 65535 : string(self).matches("^([a-zA-Z0-9]([-a-zA-Z0-9]{0,13}[a-zA-Z0-9])?)$")',
    "must be a port number from 1 to 65535, or the name of a port of at most 15 letters, digits and hyphens",
)
NAME = spelled(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "a name of lower-case letters, digits and hyphens that begins and ends with a letter or digit",
)
SUBDOMAIN = spelled(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "the name of an object: lower-case letters, digits, hyphens and dots, with a letter or digit at both ends of each part",
)
NAME_OR_NONE, SUBDOMAIN_OR_NONE = (Rule(f"self == '' || {one.rule}", one.message) for one in (NAME, SUBDOMAIN))
# What may be the end of a label's key, and is one word to QEMU: no comma, no blank, no sign that means something there.
WORD = spelled(
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    "one word of letters, digits, hyphens, underscores and dots that begins and ends with a letter or digit",
)
PRINTABLE = Rule(r"""!self.matches("[\\x00-\\x1f\\x7f-\\x9f]")""", "must have no control characters, such as NUL or a line break")
STAYS_INSIDE = Rule(
    r"""!self.matches("[\\x00-\\x1f\\x7f-\\x9f]") && !self.matches("(^|/)\\.\\.(/|$)")""",
    "must be the path of a file that does not lead out: without .. and without control characters",
)


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every view. `kw_only` is not inherited by msgspec, and type checkers want `frozen` repeated: each class says both."""

    # What the schema says of the whole object, beyond its fields.
    RULES: ClassVar[tuple[Rule, ...]] = ()
    # Fields that people write out of habit or from other texts, and what to write instead. They are refused by that sentence.
    REFUSED: ClassVar[tuple[tuple[str, str], ...]] = ()
    # Fields of this view that texts about it print as Go does, with a capital: refused in that spelling, by the right one.
    CAPITALS: ClassVar[tuple[str, ...]] = ()
    # Fields that are required by a rule, with what it says, and not by the schema: where something that the schema requires is
    # missing an API server asks no rules, and nobody would hear of a misspelled one.
    REQUIRED: ClassVar[tuple[tuple[str, str], ...]] = ()
    # True where the object holds more than we read of it (a pod template) and must be kept whole.
    OPEN: ClassVar[bool] = False


def doc(
    description: str,
    *,
    ge: int | None = None,
    le: int | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    **schema: Any,
) -> Meta:
    """A field's description, its limits (checked when read, too) and further keys of its schema.

    Keys are written as Python names: `list_keys=("type",)`, `default=3`, `rules=(Rule(…),)`; see `_extra`.
    """
    limits: dict[str, Any] = {"ge": ge, "le": le, "min_length": min_length, "max_length": max_length}
    given = {name: value for name, value in limits.items() if value is not None}
    return Meta(description=description, extra_json_schema=_extra(schema), **given)


def untyped(example: Any) -> Meta:
    """Around a type of which the schema shall know nothing but an example: it is judged by validation, which can say what would be
    right. The answer to a wrong type is the API server's own, and comes before any rule."""
    return Meta(extra_json_schema={PRESERVE: True, "example": example})


def limited(max_length: int, *rules: Rule) -> Meta:
    """Limits of a text inside a list, which has no description of its own. Only the schema's: what is stored can be read."""
    return Meta(extra_json_schema={"maxLength": max_length, **({VALIDATIONS: [rule.schema() for rule in rules]} if rules else {})})


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
    "maximum": "maximum",
    "nullable": "nullable",
    "format": "format",
    "required": "required",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "max_items": "maxItems",
    # Of the schema alone: what is longer, and stored already, can still be read.
    "max_text": "maxLength",
    "map_type": "x-kubernetes-map-type",
    "example": "example",
}

Time = Annotated[datetime.datetime, Meta(tz=True, extra_json_schema={"type": "string", "format": "date-time"})]
MICRO = "microseconds"
MicroTime = Annotated[datetime.datetime, Meta(tz=True, extra_json_schema={"type": "string", "format": "date-time", "title": MICRO})]
Quantity = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "maxLength": 64, VALIDATIONS: QUANTITY_RULES})]
IntOrPercent = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "maxLength": 16, VALIDATIONS: [_PERCENT.schema()]})]
IntOrName = Annotated[int | str, Meta(extra_json_schema={**_INT_OR_STRING, "maxLength": 63, VALIDATIONS: [_PORT.schema()]})]
Duration = Annotated[str, Meta(max_length=64, extra_json_schema={VALIDATIONS: [_DURATION.schema()]})]
ObjectName = Annotated[str, Meta(min_length=1, max_length=253, extra_json_schema={VALIDATIONS: [SUBDOMAIN.schema()]})]
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
