"""Which labels are wanted: the rules of a label selector, ready to be asked many times.

`matchLabels` and `matchExpressions` of objects become a Selector here; the text of `labelSelector=` does in selector_text.py.
No selector at all (None) picks nothing; an empty one picks everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from herder.api import names
from herder.api.integers import parse_int64
from herder.api.problems import Problem, forbidden, invalid, not_supported, required

IN: Final = "in"
NOT_IN: Final = "notin"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER: Final = "gt"
LESS: Final = "lt"

BINARY_OPERATORS: Final = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER, LESS)
_ALL_OPERATORS: Final = (*BINARY_OPERATORS, EXISTS, DOES_NOT_EXIST)
_EXPRESSION_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}
_SIGNS: Final = {EQUALS: "=", DOUBLE_EQUALS: "==", NOT_EQUALS: "!=", GREATER: ">", LESS: "<"}
_NO_LABELS: Final[Mapping[str, str]] = {}

Test = Callable[[Callable[[str], str | None]], bool]


class Requirement(msgspec.Struct, frozen=True):
    """One key, one operator, its values. Make it with `requirement`, which checks it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator == EXISTS:
            return self.key
        listed = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            return f"{self.key} {self.operator} ({listed})"
        return f"{self.key}{_SIGNS[self.operator]}{listed}"


def requirement(key: str, operator: str, values: Iterable[str], field: str = "") -> Requirement:
    """A checked requirement; ValueError holds all that is wrong with it."""
    made = Requirement(key, operator, tuple(values))
    problems = requirement_problems(made, field)
    if problems:
        raise ValueError(joined(problems))
    return made


def joined(problems: Sequence[Problem]) -> str:
    """Several problems in one sentence, as Kubernetes writes them."""
    sentences = list(dict.fromkeys(str(problem) for problem in problems))
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def requirement_problems(wanted: Requirement, field: str = "") -> list[Problem]:
    dot = f"{field}." if field else ""
    found = [invalid(f"{dot}key", wanted.key, "; ".join(said)) for said in [names.label_key(wanted.key)] if said]
    found += _value_count_problems(wanted, dot)
    for index, value in enumerate(wanted.values):
        complaints = names.label_value(value)
        if complaints:
            found.append(invalid(f"{dot}values[{index}][{wanted.key}]", value, "; ".join(complaints)))
    return found


def _value_count_problems(wanted: Requirement, dot: str) -> list[Problem]:
    values = list(wanted.values)
    match wanted.operator:
        case "in" | "notin" if not values:
            return [invalid(f"{dot}values", values, "for 'in', 'notin' operators, values set can't be empty")]
        case "=" | "==" | "!=" if len(values) != 1:
            return [invalid(f"{dot}values", values, "exact-match compatibility requires one single value")]
        case "exists" | "!" if values:
            return [invalid(f"{dot}values", values, "values set must be empty for exists and does not exist")]
        case "gt" | "lt":
            return _number_problems(values, dot)
        case operator if operator not in _ALL_OPERATORS:
            return [not_supported(f"{dot}operator", operator, _ALL_OPERATORS)]
        case _:
            return []


def _number_problems(values: list[str], dot: str) -> list[Problem]:
    found: list[Problem] = []
    if len(values) != 1:
        found.append(invalid(f"{dot}values", values, "for 'Gt', 'Lt' operators, exactly one value is required"))
    for index, value in enumerate(values):
        if parse_int64(value) is None:
            found.append(invalid(f"{dot}values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer"))
    return found


class Selector:
    """All of its requirements must hold. Compiled once; `matches` is what runs often."""

    __slots__ = ("_exact", "_tests", "requirements", "selectable")

    def __init__(self, requirements: Iterable[Requirement], selectable: bool = True) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda one: one.key))
        self.selectable = selectable
        self._exact = tuple((one.key, one.values[0]) for one in self.requirements if _is_exact(one))
        self._tests = tuple(_test_for(one) for one in self.requirements if not _is_exact(one))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        get = (_NO_LABELS if labels is None else labels).get
        for key, value in self._exact:
            if get(key) != value:
                return False
        for test in self._tests:
            if not test(get):
                return False
        return self.selectable

    @property
    def empty(self) -> bool:
        """Whether it restricts nothing."""
        return self.selectable and not self.requirements

    def exact_value(self, key: str) -> str | None:
        """The one value that it demands of a label, if it does; for indexes."""
        first = next((one for one in self.requirements if one.key == key), None)
        if first is None or first.operator not in (EQUALS, DOUBLE_EQUALS, IN) or len(first.values) != 1:
            return None
        return first.values[0]

    def first_exact(self) -> tuple[str, str] | None:
        """A label and the one value that it demands of it, where it demands any; the same one each time."""
        return next(((key, value) for key, value in self._exact if value), None)

    def __str__(self) -> str:
        return ",".join(str(one) for one in self.requirements)

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})" if self.selectable else "NOTHING"

    def __eq__(self, other: object) -> bool:
        same_type = isinstance(other, Selector)
        return same_type and self.requirements == other.requirements and self.selectable == other.selectable

    def __hash__(self) -> int:
        return hash((self.requirements, self.selectable))


def _is_exact(one: Requirement) -> bool:
    return one.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(one.values) == 1


def _test_for(one: Requirement) -> Test:
    key, values = one.key, frozenset(one.values)
    match one.operator:
        case "in" | "=" | "==":
            return lambda get: get(key) in values
        case "notin" | "!=":
            return lambda get: get(key) not in values
        case "exists":
            return lambda get: get(key) is not None
        case "!":
            return lambda get: get(key) is None
        case _:
            return _number_test(one)


def _number_test(one: Requirement) -> Test:
    key = one.key
    bound = parse_int64(one.values[0]) if len(one.values) == 1 else None
    sign = {GREATER: 1, LESS: -1}.get(one.operator)
    if bound is None or sign is None:
        return lambda get: False

    def test(get: Callable[[str], str | None]) -> bool:
        text = get(key)
        number = None if text is None else parse_int64(text)
        return number is not None and (number - bound) * sign > 0

    return test


EVERYTHING: Final = Selector(())
NOTHING: Final = Selector((), selectable=False)


def selector_from_labels(labels: Mapping[str, str] | None) -> Selector:
    """All of these labels; not checked, because `nodeSelector` and old objects may hold anything."""
    return Selector(Requirement(key, EQUALS, (value,)) for key, value in labels.items()) if labels else EVERYTHING


def selector_from_object(selector: Mapping[str, Any] | None) -> Selector:
    """A LabelSelector as it stands in an object. ValueError when it is not a right one."""
    if selector is None:
        return NOTHING
    made = [requirement(key, EQUALS, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _EXPRESSION_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise ValueError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
        made.append(requirement(expression.get("key", ""), operator, expression.get("values") or ()))
    return Selector(made) if made else EVERYTHING


def validate_label_selector(selector: Mapping[str, Any] | None, field: str) -> list[Problem]:
    """What is wrong with a LabelSelector in an object."""
    if not selector:
        return []
    found = validate_labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _expression_problems(expression, f"{field}.matchExpressions[{index}]")
    return found


def validate_labels(labels: Mapping[str, str] | None, field: str) -> list[Problem]:
    found: list[Problem] = []
    for key, value in (labels or {}).items():
        found += [invalid(field, key, complaint) for complaint in names.label_key(key)]
        found += [invalid(field, value, complaint) for complaint in names.label_value(value)]
    return found


def _expression_problems(expression: Mapping[str, Any], field: str) -> list[Problem]:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    found: list[Problem] = []
    if operator in ("In", "NotIn"):
        if not values:
            found.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            found.append(forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    else:
        found.append(invalid(f"{field}.operator", operator, "not a valid selector operator"))
    key = expression.get("key", "")
    found += [invalid(f"{field}.key", key, complaint) for complaint in names.label_key(key)]
    for index, value in enumerate(values):
        found += [invalid(f"{field}.values[{index}]", value, complaint) for complaint in names.label_value(value)]
    return found
