"""The part of JSONPath that CRDs use in printer columns and scale paths, as Kubernetes reads it.

`.spec.a.b`, `.items[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `..name`, `['a','b']`, `['dots\\.escaped']`, `.with\\.dots`,
`[?(@.type=="Ready")]`. As in Kubernetes, a dot inside quotes still divides unless it is escaped. A path that does not fit
the object gives nothing; it never raises.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]
Find = Callable[[Any], list[Any]]

_FIELD = re.compile(r"(?:\\.|[^\s.,\[\]$@{}\\])+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_QUOTED_KEY = re.compile(r"'([^']*)'")
_FILTER = re.compile(r"([^!<>=]+?)\s*(==|!=|<=|>=|<|>)\s*(.+)", re.DOTALL)
_TEXT = re.compile(r"""(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')""")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _DoesNotFit(Exception):
    """The object is not shaped as the path expects."""


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Find:
    """All values that the path finds in an object, in order. ValueError when the path itself makes no sense."""
    if not text.startswith((".", "[", "$")):
        raise ValueError(f"{text!r} is not a JSON path: it must start with a dot")
    return _find(_steps(text))


def _find(steps: list[Step]) -> Find:
    def find(document: Any) -> list[Any]:
        values = [document]
        try:
            for step in steps:
                values = step(values)
        except _DoesNotFit:
            return []
        return values

    return find


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        step, position = _next_step(text, position)
        steps.extend(step)
    return steps


def _next_step(text: str, position: int) -> tuple[list[Step], int]:
    if text[position] in " $@":
        return [], position + 1
    if text.startswith("[?(", position):
        return _filter_step(text, position)
    if text[position] == "[":
        end = text.find("]", position)
        if end < 0:
            raise ValueError(f"{text!r} is not a JSON path: a [ is not closed")
        return [_brackets(text, text[position + 1 : end])], end + 1
    if text.startswith("..", position):
        # The dot of a following field is the second one of the two.
        has_field = _FIELD.match(text, position + 2) is not None
        return [_everything_below], position + (1 if has_field else 2)
    if text[position] == ".":
        return _field_step(text, position + 1)
    raise ValueError(f"{text!r} is not a JSON path: unexpected {text[position]!r} at {position}")


def _field_step(text: str, position: int) -> tuple[list[Step], int]:
    found = _FIELD.match(text, position)
    if found is None:
        # A lone dot is the object itself; a dot before a bracket is tolerated; anything else is a mistake.
        if position == len(text) or text[position] == "[":
            return [], position
        raise ValueError(f"{text!r} is not a JSON path: a name is missing at {position}")
    name = found.group()
    return [_children if name == "*" else _field(name.replace("\\", ""))], found.end()


def _field(name: str) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _children(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return found


def _everything_below(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict | list) and value:
            found.append(value)
            found.extend(_everything_below(_children([value])))
    return found


def _brackets(text: str, inside: str) -> Step:
    choices = [_bracket(text, choice.strip()) for choice in inside.split(",")]
    if len(choices) == 1:
        return choices[0]
    return lambda values: [found for choice in choices for found in choice(values)]


def _bracket(text: str, inside: str) -> Step:
    if key := _QUOTED_KEY.fullmatch(inside):
        steps = _steps("." + key.group(1))
        return lambda values: _walk(steps, values)
    if inside == "*":
        return _slice(None, None, 1)
    found = _SLICE.fullmatch(inside)
    if found is None or not inside:
        raise ValueError(f"{text!r} is not a JSON path: {inside!r} is no index, slice or quoted key")
    start, end, stride = found.groups()
    if end is None:
        return _index(int(start))
    if stride and int(stride) <= 0:
        raise ValueError(f"{text!r} is not a JSON path: the step of a slice must be greater than zero")
    return _slice(int(start) if start else None, int(end) if end else None, int(stride) if stride else 1)


def _walk(steps: list[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def _lists(values: list[Any]) -> list[list[Any]]:
    present = [value for value in values if value is not None]
    if not all(isinstance(value, list) for value in present):
        raise _DoesNotFit
    return present


def _index(index: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        try:
            return [items[index] for items in _lists(values)]
        except IndexError as error:
            raise _DoesNotFit from error

    return step


def _slice(start: int | None, end: int | None, stride: int) -> Step:
    return lambda values: [item for items in _lists(values) for item in items[start:end:stride]]


def _filter_step(text: str, position: int) -> tuple[list[Step], int]:
    end = _end_of_filter(text, position + 3)
    condition = text[position + 3 : end].strip()
    compared = _FILTER.fullmatch(condition)
    if compared is None:
        return [_filter(_exists(_operand(text, condition)))], end + 2
    left, sign, right = compared.groups()
    return [_filter(_comparison(_operand(text, left.strip()), sign, _operand(text, right.strip())))], end + 2


def _end_of_filter(text: str, position: int) -> int:
    """Where `)]` closes the filter: not inside quotes."""
    quote = ""
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif text.startswith(")]", position):
            return position
        position += 1
    raise ValueError(f"{text!r} is not a JSON path: a filter is not closed")


def _operand(text: str, operand: str) -> Find:
    """A side of a comparison: a literal, or a path from the item (@)."""
    if quoted := _TEXT.fullmatch(operand):
        value: Any = re.sub(r"\\(.)", r"\1", quoted.group(1) if quoted.group(1) is not None else quoted.group(2))
    elif number := _NUMBER.fullmatch(operand):
        value = float(operand) if number.group(1) else int(operand)
    elif operand in ("true", "false"):
        value = operand == "true"
    elif operand.startswith("@"):
        steps = _steps(operand)
        return lambda item: _walk(steps, [item])
    else:
        raise ValueError(f"{text!r} is not a JSON path: {operand!r} cannot be compared")
    return lambda item: [value]


def _filter(matches: Callable[[Any], bool]) -> Step:
    def step(values: list[Any]) -> list[Any]:
        if not all(isinstance(value, list) for value in values):
            raise _DoesNotFit
        return [item for items in values for item in items if matches(item)]

    return step


def _exists(operand: Find) -> Callable[[Any], bool]:
    return lambda item: bool(operand(item))


def _comparison(left: Find, sign: str, right: Find) -> Callable[[Any], bool]:
    compare = _COMPARE[sign]
    orders = sign not in ("==", "!=")

    def matches(item: Any) -> bool:
        mine, other = left(item), right(item)
        if not mine or not other:
            return False
        comparable = len(mine) == 1 == len(other) and type(mine[0]) is type(other[0]) and isinstance(mine[0], str | int | float)
        if not comparable or (orders and isinstance(mine[0], bool)):
            raise _DoesNotFit
        return compare(mine[0], other[0])

    return matches
