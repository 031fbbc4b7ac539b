"""The tables of custom resources: the printer columns of their definition, or the age alone."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.server.jsonpath import Find, compile_path
from herder.server.resources import Column
from herder.server.sorted_json import encode_sorted
from herder.server.tables.ages import strict_age
from herder.server.tables.columns import NAME, Printer, name_of

AGE = Column("Age", "date", "Time since the object was created.", json_path=".metadata.creationTimestamp")

# Whole numbers are written out up to here; beyond it the exponent is shorter to read.
_LARGEST_PLAIN = 1e21


def custom_printer(columns: tuple[Column, ...]) -> Printer:
    """A path that makes no sense ends the columns there: the rest of the table is still worth having."""
    shown: list[Column] = []
    finders: list[tuple[Find, str]] = []
    for column in columns or (AGE,):
        try:
            finders.append((compile_path(column.json_path), column.type))
        except ValueError:
            break
        shown.append(_described(column))

    def row(obj: dict[str, Any], now: float) -> list[Any]:
        return [name_of(obj), *[_cell(find(obj), kind, now) for find, kind in finders]]

    return Printer((NAME, *shown), row)


def _described(column: Column) -> Column:
    return msgspec.structs.replace(column, description=column.description or f"The value at {column.json_path}.")


def _cell(found: list[Any], kind: str, now: float) -> Any:
    """The first value found, as the type of its column; null where the value has another type."""
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return _as_text(value)
    if kind == "date":
        return strict_age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, float):
        return _number(value)
    return encode_sorted(value).decode()


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < _LARGEST_PLAIN:
        return str(int(value))
    return repr(value)
