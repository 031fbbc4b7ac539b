"""Which nodes an affinity or a volume allows: terms of which one must hold, each made of requirements that all must hold.

A term without requirements allows no node, and no terms allow no node. A term with a mistake in it never matches; `problems`
says what the mistake is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from herder.api.field_selectors import FieldRequirement, FieldSelector
from herder.api.problems import Problem, invalid, not_supported
from herder.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_IN,
    Requirement,
    Selector,
    requirement_problems,
    selector_from_labels,
)

_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST, "Gt": GREATER, "Lt": LESS}


class NodeSelectorTerm:
    """One term, compiled."""

    __slots__ = ("_fields", "_labels", "problems")

    def __init__(self, term: Mapping[str, Any], field: str = "") -> None:
        self.problems: list[Problem] = []
        dot = f"{field}." if field else ""
        expressions: Sequence[Mapping[str, Any]] = term.get("matchExpressions") or ()
        fields: Sequence[Mapping[str, Any]] = term.get("matchFields") or ()
        self._labels = self._label_selector(expressions, f"{dot}matchExpressions") if expressions else None
        self._fields = self._field_selector(fields, f"{dot}matchFields") if fields else None

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        if self.problems or (self._labels is None and self._fields is None):
            return False
        if self._labels is not None and not self._labels.matches(labels):
            return False
        # A node without a name (the template of one) is not judged by its name.
        return self._fields is None or not name or self._fields.matches({"metadata.name": name})

    def _label_selector(self, expressions: Sequence[Mapping[str, Any]], field: str) -> Selector:
        made: list[Requirement] = []
        for index, expression in enumerate(expressions):
            here = f"{field}[{index}]"
            operator = _OPERATORS.get(expression.get("operator", ""))
            if operator is None:
                self.problems.append(not_supported(f"{here}.operator", expression.get("operator", ""), _OPERATORS))
                continue
            one = Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ()))
            self.problems += requirement_problems(one, here)
            made.append(one)
        return Selector(made)

    def _field_selector(self, expressions: Sequence[Mapping[str, Any]], field: str) -> FieldSelector:
        made: list[FieldRequirement] = []
        for index, expression in enumerate(expressions):
            operator, values = expression.get("operator", ""), expression.get("values") or []
            if operator not in ("In", "NotIn"):
                self.problems.append(not_supported(f"{field}[{index}].operator", operator, ("In", "NotIn")))
            elif len(values) != 1:
                self.problems.append(invalid(f"{field}[{index}].values", values, "must have one element"))
            else:
                made.append(FieldRequirement(expression.get("key", ""), operator == "In", values[0]))
        return FieldSelector(made)


class NodeSelector:
    """`nodeSelectorTerms`: one of them must hold."""

    __slots__ = ("problems", "terms")

    def __init__(self, selector: Mapping[str, Any] | None, field: str = "") -> None:
        prefix = f"{field}.nodeSelectorTerms" if field else "nodeSelectorTerms"
        terms: Sequence[Mapping[str, Any]] = (selector or {}).get("nodeSelectorTerms") or ()
        self.terms = tuple(NodeSelectorTerm(term, f"{prefix}[{index}]") for index, term in enumerate(terms))
        self.problems = [problem for term in self.terms for problem in term.problems]

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


class PreferredTerms:
    """`preferredDuringSchedulingIgnoredDuringExecution`: every term that holds adds its weight."""

    __slots__ = ("problems", "terms")

    def __init__(self, terms: Sequence[Mapping[str, Any]] | None, field: str = "") -> None:
        weighted = [
            (one.get("weight", 0), NodeSelectorTerm(one.get("preference") or {}, f"{field}[{index}]"))
            for index, one in enumerate(terms or ())
            if one.get("weight", 0)
        ]
        self.terms = tuple(weighted)
        self.problems = [problem for _, term in weighted for problem in term.problems]

    def score(self, labels: Mapping[str, str] | None, name: str) -> int:
        return sum(weight for weight, term in self.terms if term.matches(labels, name))


class RequiredNodeAffinity:
    """What a pod demands of its node: `nodeSelector` and the required node affinity together."""

    __slots__ = ("_affinity", "_labels")

    def __init__(self, pod_spec: Mapping[str, Any]) -> None:
        self._labels = selector_from_labels(pod_spec.get("nodeSelector"))
        node_affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
        demanded = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._affinity = None if demanded is None else NodeSelector(demanded)

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        return self._labels.matches(labels) and (self._affinity is None or self._affinity.matches(labels, name))
