"""For `explain target`: of each node that is no target, the very selector, feature, taint or amount that says no.

Only for those who may read nodes themselves: what a migration adds can name any label, and here the node's value of it is told.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from herder.api.meta import NodeSelectorTerm
from herder.rules.migratability.profile import readable
from herder.rules.placement import Needs, Snapshot, needs_of
from herder.rules.placement.cordon import Cordon
from herder.rules.placement.node_affinity import NodeAffinity
from herder.rules.placement.unmet import unmet_term
from herder.rules.targets.nodes import Asked, Document, Judged, cpu_tests, runtime_tests, target_needs
from herder.rules.targets.words import NOT_SCHEDULABLE, OTHER_CPU, OTHER_RUNTIME, OWN_RULES, SOURCE, Phrase, excluded

Details = dict[int, tuple[str, ...]]


def details_of(asked: Asked, judged: Judged, snapshot: Snapshot) -> Details:
    """By row of the node."""
    own, found = needs_of(asked.pod), _of_rules(target_needs(asked), judged, snapshot)
    for number, phrase in enumerate(judged.phrases[1:], start=1):
        rows: list[int] = np.flatnonzero(judged.numbers == number).tolist()
        said = _said(phrase, rows, asked, own, snapshot)
        if said is not None:
            found |= {row: tuple(words) for row, words in zip(rows, said, strict=True)}
    return found


def _said(phrase: Phrase, rows: list[int], asked: Asked, own: Needs, snapshot: Snapshot) -> Iterable[Iterable[str]] | None:
    """None where the scheduler's rules say it."""
    if phrase == SOURCE:
        return ([] for _ in rows)
    if phrase in (OWN_RULES, NOT_SCHEDULABLE):
        return NodeAffinity().details(own, rows, snapshot)
    if phrase == OTHER_CPU:
        return (_lacking(cpu_tests(asked), row, snapshot) for row in rows)
    if phrase == OTHER_RUNTIME:
        return (_unmet({"matchExpressions": runtime_tests(asked)}, row, snapshot) for row in rows)
    if phrase == excluded(asked.added.said_by):
        return (_unmet(asked.added.as_term(), row, snapshot) for row in rows)
    return None


def _of_rules(target: Needs, judged: Judged, snapshot: Snapshot) -> Details:
    """Of a cordon there is no more to say."""
    found: Details = {}
    for rule in judged.decision.rules():
        refused = [one.refusal.nodes for one in judged.decision.refused if one.rule is rule]
        if refused and not isinstance(rule, Cordon):
            rows: list[int] = np.flatnonzero(np.logical_or.reduce(refused)).tolist()
            found |= {row: tuple(said) for row, said in zip(rows, rule.details(target, rows, snapshot), strict=True)}
    return found


def _unmet(term: Document, row: int, snapshot: Snapshot) -> Iterable[str]:
    return unmet_term(snapshot.nodes, msgspec.convert(term, NodeSelectorTerm), row)


def _lacking(tests: list[Document], row: int, snapshot: Snapshot) -> list[str]:
    """As `explain migratability` calls it: names of features, `model NAME`, and another vendor."""
    labels = snapshot.nodes.labels.of(row)
    missing = [
        readable(test["key"]) for test in tests if test["operator"] == "In" and labels.get(test["key"]) not in test["values"]
    ]
    others = [
        f"has vendor {readable(test['key'])}" for test in tests if test["operator"] == "DoesNotExist" and test["key"] in labels
    ]
    return [*others, *missing]
