"""Whether a document has the types of its kind, before anything else looks at it.

What Kubernetes does when it decodes JSON into Go structs happens here in one walk: a value of another type is refused, null is
the same as absent, quantities get their canonical spelling. The shapes come from the typed views, so there is one list of fields.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Final

from msgspec import inspect

from herder.api.builtin.schema_shapes import schema_mismatch
from herder.api.core import CORE_KINDS
from herder.api.meta import ObjectMeta
from herder.api.problems import shown
from herder.api.quantity import Quantity, parse_quantity
from herder.api.views import MICRO, QUANTITY_RULES, VALIDATIONS
from herder.api.world import micro_timestamp

Check = Callable[[Any], Any]
"""Takes a value, returns the value to store, raises _Mismatch."""

_MILLI: Final = 1_000_000
_TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?(Z|[+-][0-2][0-9]:[0-5][0-9])")
_MICROSECONDS: Final = re.compile(r"\.\d{6}(?:Z|[+-])")


class _Mismatch(Exception):
    """What is wrong; where, is added on the way up, so that the way down costs nothing."""

    def __init__(self, before: str, after: str = "") -> None:
        self.before = before
        self.after = after
        self.steps: list[str] = []

    def sentence(self) -> str:
        return f"{self.before}{''.join(reversed(self.steps)).lstrip('.') or 'the object'}{self.after}"


def conform(group: str, kind: str, document: dict[str, Any]) -> str | None:
    """Brings the document into shape, in place. The sentence that says why it cannot be read, or None.

    The server answers 400 with the sentence, as Kubernetes does for what it cannot decode.
    """
    check = _shape(group, kind)
    if check is None:
        return None
    try:
        check(document)
    except _Mismatch as mismatch:
        return mismatch.sentence()
    return None


def conform_metadata(document: dict[str, Any]) -> str | None:
    """The same for the metadata alone, of a kind that is not built in."""
    metadata = document.get("metadata")
    if metadata is None:
        return None
    try:
        _metadata_shape()(metadata)
    except _Mismatch as mismatch:
        mismatch.steps.append(".metadata")
        return mismatch.sentence()
    return None


@cache
def _metadata_shape() -> Check:
    return _check_for(inspect.type_info(ObjectMeta))


@cache
def _shape(group: str, kind: str) -> Check | None:
    view = CORE_KINDS.get((group, kind))
    return None if view is None else _check_for(inspect.type_info(view))


def _fail(value: Any, wanted: str) -> Any:
    raise _Mismatch(f"json: cannot unmarshal {_type_name(value)} into field ", f" of type {wanted}")


def _type_name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return f"number {shown(value)}"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _check_for(kind: inspect.Type) -> Check:
    if isinstance(kind, inspect.Metadata):
        extra = kind.extra_json_schema or {}
        if extra.get(VALIDATIONS) == QUANTITY_RULES:
            return _quantity
        if extra.get("title") == MICRO:
            return _micro_time
        return _check_for(kind.type)
    if isinstance(kind, inspect.UnionType):
        real = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _check_for(real[0]) if len(real) == 1 else _number_or_text
    match kind:
        case inspect.StructType():
            return _struct(kind)
        case inspect.VarTupleType():
            return _list(_check_for(kind.item_type), isinstance(_bare(kind.item_type), inspect.StructType))
        case inspect.DictType():
            return _map(_check_for(kind.value_type))
        case inspect.StrType() | inspect.LiteralType():
            return _text
        case inspect.DateTimeType():
            return _time
        case inspect.BoolType():
            return _bool
        case inspect.IntType():
            return _whole
        case inspect.BytesType():
            return _bytes
        case _:
            return _anything


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _struct(kind: inspect.StructType) -> Check:
    checks: dict[str, Check] = {
        field.encode_name: _schema if field.encode_name == "openAPIV3Schema" else _check_for(field.type) for field in kind.fields
    }
    get = checks.get

    def check(value: Any) -> Any:
        if type(value) is not dict:
            return _fail(value, "object")
        nulls: list[str] | None = None
        name = ""
        try:
            for name, inner in value.items():
                one = get(name)
                if inner is None:
                    nulls = [*(nulls or ()), name]
                elif one is not None:
                    kept = one(inner)
                    if kept is not inner:
                        value[name] = kept  # no key is added or removed while walking
        except _Mismatch as mismatch:
            mismatch.steps.append(f".{name}")
            raise
        for name in nulls or ():
            del value[name]
        return value

    return check


def _list(check_item: Check, of_objects: bool) -> Check:
    of_text = check_item is _text

    def check(value: Any) -> Any:
        if type(value) is not list:
            return _fail(value, "array")
        index = 0
        try:
            for index, item in enumerate(value):
                # Go makes an empty object of a null among objects, and an empty text of one among texts.
                value[index] = {} if item is None and of_objects else "" if item is None and of_text else check_item(item)
        except _Mismatch as mismatch:
            mismatch.steps.append(f"[{index}]")
            raise
        return value

    return check


def _map(check_value: Check) -> Check:
    checked = _resource if check_value is _quantity else check_value
    of_text = check_value in (_text, _bytes)

    def check(value: Any) -> Any:
        if type(value) is not dict:
            return _fail(value, "object")
        name = ""
        try:
            for name, inner in value.items():
                value[name] = "" if inner is None and of_text else checked(inner)
        except _Mismatch as mismatch:
            mismatch.steps.append(f".{name}")
            raise
        return value

    return check


def _text(value: Any) -> Any:
    return value if type(value) is str else _fail(value, "string")


def _time(value: Any) -> Any:
    if type(value) is not str:
        return _fail(value, "time")
    if not _TIME.fullmatch(value):
        raise _Mismatch("", f": parsing time {shown(value)}: cannot parse it as a time such as 2006-01-02T15:04:05Z")
    return value


def _micro_time(value: Any) -> Any:
    """Leases and events count in microseconds, all six of them; what is written in another zone is stored in UTC."""
    if type(value) is not str:
        return _fail(value, "time")
    if not _TIME.fullmatch(value) or not _MICROSECONDS.search(value):
        raise _Mismatch("", f": parsing time {shown(value)}: cannot parse it as a time such as 2006-01-02T15:04:05.000000Z")
    return value if value.endswith("Z") else micro_timestamp(datetime.fromisoformat(value).timestamp())


def _bool(value: Any) -> Any:
    return value if type(value) is bool else _fail(value, "bool")


def _whole(value: Any) -> Any:
    return value if type(value) is int else _fail(value, "integer")


def _number_or_text(value: Any) -> Any:
    return value if type(value) in (int, str) else _fail(value, "integer or string")


def _schema(value: Any) -> Any:
    mismatch = schema_mismatch(value, "")
    if mismatch is not None:
        raise _Mismatch("in ", f": {mismatch}")
    return value


def _anything(value: Any) -> Any:
    return value


def _bytes(value: Any) -> Any:
    if type(value) is not str:
        return _fail(value, "base64 text")
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise _Mismatch("illegal base64 data in field ") from None
    return value


def _amount(value: Any) -> Quantity:
    if type(value) not in (str, int, float):
        return _fail(value, "quantity")
    try:
        return parse_quantity(value)
    except ValueError as problem:
        raise _Mismatch("", f": {problem}") from None


def _quantity(value: Any) -> Any:
    return str(_amount(value))


def _resource(value: Any) -> Any:
    """In lists of resources Kubernetes rounds up to thousandths."""
    amount = _amount(value)
    if amount.nanos % _MILLI:
        amount = Quantity(-(-amount.nanos // _MILLI) * _MILLI, amount.format)
    return str(amount)
