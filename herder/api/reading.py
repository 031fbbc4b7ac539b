"""Reading documents whose shape the schema has checked already, or, where there was no schema, has not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from herder.api.integers import MAX_INT64
from herder.api.problems import Problem, invalid
from herder.api.quantity import Quantity, of, parse_quantity

Json = dict[str, Any]
NOT_AN_AMOUNT = "must be an amount: a number, or a number with a unit such as 500m, 2, 512Mi or 2Gi"


def part(document: Any, *path: str) -> Json:
    """The object at this path; {} where there is none."""
    here = document
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def entries(document: Any, *path: str) -> list[Json]:
    """The objects of the list at this path; [] where there is none."""
    here = part(document, *path[:-1]).get(path[-1])
    return [one for one in here if isinstance(one, dict)] if isinstance(here, list) else []


def indexed(document: Any, *path: str) -> Iterator[tuple[str, Json]]:
    """The same, each with its own path: `disks[0]`."""
    for index, entry in enumerate(entries(document, *path)):
        yield f"{'.'.join(path)}[{index}]", entry


def text(document: Json, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def quantity_at(document: Json, name: str, path: str, problems: list[Problem]) -> Quantity | None:
    """The amount in a field. None where it is absent or wrong; what is wrong goes to `problems`."""
    value = document.get(name)
    if value is None:
        return None
    try:
        amount = parse_quantity(value)
    except (ValueError, TypeError):
        problems.append(invalid(f"{path}.{name}", value, NOT_AN_AMOUNT))
        return None
    if amount.value() > MAX_INT64:
        # Beyond that programs that count with 64 bits read something else.
        problems.append(invalid(f"{path}.{name}", value, f"must be at most {MAX_INT64}, which is a little less than 8Ei"))
        return None
    return amount


def positive(document: Json, name: str, path: str, problems: list[Problem]) -> Quantity | None:
    """An amount that must be more than nothing."""
    amount = quantity_at(document, name, path, problems)
    if amount is not None and amount.sign <= 0:
        problems.append(invalid(f"{path}.{name}", document[name], "must be greater than zero"))
        return None
    return amount


def positive_bytes(document: Json, name: str, path: str, problems: list[Problem]) -> Quantity | None:
    """A size: more than nothing, and no part of a byte."""
    amount = positive(document, name, path, problems)
    if amount is not None and amount.nanos != of(amount.value()).nanos:
        said = "must be a whole number of bytes: m stands for thousandths; write M or Mi for millions"
        problems.append(invalid(f"{path}.{name}", document[name], said))
        return None
    return amount
