"""The ordered policies of a pool. The schema leaves an entry untyped: the seed prints one in a way that YAML reads as a string, and
an API server would answer that with the type alone, before anybody could show the right shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from herder.api.problems import Problem, invalid, required, too_many, type_invalid
from herder.api.reading import Json
from herder.api.selectors import validate_label_selector, validate_labels

SHAPE: Final = "orderedPolicies: [{labelSelector: {matchLabels: {…}}}]"
# As many as the typed schemas of other selectors allow: every machine of the pool is tested by each.
MOST_POLICIES: Final = 32
MOST_PAIRS: Final = 256
MOST_EXPRESSIONS: Final = 64
MOST_VALUES: Final = 256


def ordered_policy_problems(policy: Json, path: str) -> list[Problem]:
    """`policy`: a selectionPolicy. How long the list may be is the schema's to say; none is judged in vain."""
    listed = policy.get("orderedPolicies")
    problems: list[Problem] = []
    for index, entry in enumerate(listed[:MOST_POLICIES] if isinstance(listed, list) else ()):
        problems += _entry_problems(entry, f"{path}.orderedPolicies[{index}]")
    return problems


def _entry_problems(entry: Any, path: str) -> list[Problem]:
    names = ", ".join(KINDS)
    if not isinstance(entry, dict):
        return [type_invalid(path, entry, f"must be an object with one of {names}, such as {SHAPE}")]
    document: Json = entry
    unknown = _unknown(document, tuple(KINDS), path)
    present = [name for name in KINDS if document.get(name) is not None]
    if len(present) != 1:
        has = f"these: {' '.join(present)}" if present else "none"
        return [*unknown, invalid(path, document, f"must have exactly one of {names}, but has {has}; such as {SHAPE}")]
    return unknown + KINDS[present[0]](document[present[0]], f"{path}.{present[0]}")


def _label_selector_problems(value: Any, path: str) -> list[Problem]:
    if not isinstance(value, dict):
        said = "must be an object with matchLabels or matchExpressions, such as labelSelector: {matchLabels: {…}}"
        return [type_invalid(path, value, said)]
    selector: Json = value
    problems = _unknown(selector, ("matchLabels", "matchExpressions"), path)
    if selector.get("matchLabels") is not None:
        problems += _pair_problems(selector["matchLabels"], f"{path}.matchLabels")
    problems += _list_problems(selector.get("matchExpressions"), f"{path}.matchExpressions", MOST_EXPRESSIONS, _expression_problems)
    return problems or validate_label_selector(selector, path)


def _node_selector_problems(value: Any, path: str) -> list[Problem]:
    problems = _pair_problems(value, path)
    if not problems and not value:
        return [invalid(path, value, "must have at least one pair: an empty one says nothing about nodes")]
    return problems or validate_labels(value, path)


def _pair_problems(value: Any, path: str) -> list[Problem]:
    if not isinstance(value, dict):
        return [type_invalid(path, value, "must be pairs of names and values of labels, such as {importance: low}")]
    pairs: Json = value
    if len(pairs) > MOST_PAIRS:
        return [too_many(path, len(pairs), MOST_PAIRS)]
    return [
        type_invalid(f"{path}.{name}", text, "must be a string: write it in quotes")
        for name, text in pairs.items()
        if not isinstance(text, str)
    ]


def _expression_problems(value: Any, path: str) -> list[Problem]:
    if not isinstance(value, dict):
        return [type_invalid(path, value, "must be an object with key, operator and values")]
    expression: Json = value
    problems = _unknown(expression, ("key", "operator", "values"), path)
    for name in ("key", "operator"):
        if expression.get(name) is None:
            problems.append(required(f"{path}.{name}"))
        elif not isinstance(expression[name], str):
            problems.append(type_invalid(f"{path}.{name}", expression[name], "must be a string"))
    return problems + _list_problems(expression.get("values"), f"{path}.values", MOST_VALUES, _text_problems)


def _text_problems(value: Any, path: str) -> list[Problem]:
    return [] if isinstance(value, str) else [type_invalid(path, value, "must be a string: write it in quotes")]


def _list_problems(value: Any, path: str, most: int, judge: Callable[[Any, str], list[Problem]]) -> list[Problem]:
    if value is None:
        return []
    if not isinstance(value, list):
        return [type_invalid(path, value, "must be a list")]
    listed: list[Any] = value
    if len(listed) > most:
        return [too_many(path, len(listed), most)]
    return [problem for index, one in enumerate(listed) for problem in judge(one, f"{path}[{index}]")]


def _unknown(document: Json, known: tuple[str, ...], path: str) -> list[Problem]:
    may = ", ".join(known)
    return [
        invalid(f"{path}.{name}", document[name], f"unknown field: it may have {may}") for name in document if name not in known
    ]


# What an entry can be. Another kind is one function and one line.
KINDS: Final[dict[str, Callable[[Any, str], list[Problem]]]] = {
    "labelSelector": _label_selector_problems,
    "nodeSelector": _node_selector_problems,
}
