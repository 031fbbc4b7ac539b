"""What of a node selector one node does not meet, in words. Only for those who ask about single nodes: the scheduler never does."""

from __future__ import annotations

from collections.abc import Iterator

from herder.api.integers import parse_int64
from herder.api.labels import MIGRATABILITY_LEVEL
from herder.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from herder.rules.placement.node_match import field_test, label_test
from herder.rules.placement.nodes import Nodes

# Of one test; the others are counted.
MOST_VALUES = 5


def unmet_labels(nodes: Nodes, wanted: tuple[tuple[str, str], ...], row: int) -> Iterator[str]:
    """Of a nodeSelector."""
    labels = nodes.labels.of(row)
    for key, value in wanted:
        if labels.get(key) != value:
            yield f"nodeSelector {key}={value}: {has(nodes, key, row)}"


def unmet_selector(nodes: Nodes, selector: NodeSelector, row: int, said_by: str = "nodeAffinity ") -> Iterator[str]:
    """Nothing where one term holds; else every test that does not hold, and of which term where there are several."""
    terms = selector.node_selector_terms
    unmet = [list(unmet_term(nodes, term, row)) for term in terms]
    if not terms:
        yield f"{said_by}has no terms, and so picks no node"
    if not all(unmet):
        return
    for number, tests in enumerate(unmet, start=1):
        if len(terms) > 1:
            yield f"{said_by}term {number} of {len(terms)}: {' and '.join(tests)}"
        else:
            yield from (test if test.endswith(" required") else f"{said_by}{test}" for test in tests)


def unmet_term(nodes: Nodes, term: NodeSelectorTerm, row: int) -> Iterator[str]:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        yield "a term without tests picks no node"
    for test in expressions:
        if not label_test(nodes, test)[row]:
            yield _unmet_label(nodes, test, row)
    for test in fields:
        if not field_test(nodes, test)[row]:
            yield f"{_told(test)}: the node is {nodes.offers[row].name}"


def has(nodes: Nodes, key: str, row: int) -> str:
    value = nodes.labels.of(row).get(key)
    return f"the node has no {key}" if value is None else f"the node has {key}={value}"


def _unmet_label(nodes: Nodes, test: NodeSelectorRequirement, row: int) -> str:
    least = parse_int64((test.values or ("",))[0]) if test.operator == "Gt" else None
    if test.key == MIGRATABILITY_LEVEL and least is not None:
        level = nodes.labels.of(row).get(test.key)
        return f"{'no level' if level is None else f'level {level}'}, {least + 1} required"
    return f"{_told(test)}: {has(nodes, test.key, row)}"


def _told(test: NodeSelectorRequirement) -> str:
    values = test.values or ()
    if not values:
        return f"{test.key} {test.operator}"
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
    return f"{test.key} {test.operator} ({', '.join(values[:MOST_VALUES])}{more})"
