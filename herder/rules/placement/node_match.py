"""Which nodes a node selector picks: of a pod's affinity, or of a volume. All nodes at once."""

from __future__ import annotations

import numpy as np

from herder.api.integers import parse_int64
from herder.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from herder.rules.placement.columns import Mask
from herder.rules.placement.nodes import Nodes

NAME_FIELD = "metadata.name"


def picked(nodes: Nodes, selector: NodeSelector) -> Mask:
    """Terms of which one must hold; no terms pick no node."""
    return nodes.remember(selector, lambda: _picked(nodes, selector))


def reaching(nodes: Nodes, selector: NodeSelector) -> Mask:
    """Of a volume. kube-scheduler looks at labels only there: what it says of names is passed over."""
    return nodes.remember(("volume", selector), lambda: _picked(nodes, _without_names(selector)))


def picked_by_term(nodes: Nodes, term: NodeSelectorTerm) -> Mask:
    return nodes.remember(term, lambda: _by_term(nodes, term))


def picked_by_labels(nodes: Nodes, labels: tuple[tuple[str, str], ...]) -> Mask:
    return nodes.remember(labels, lambda: _by_labels(nodes, labels))


def label_test(nodes: Nodes, test: NodeSelectorRequirement) -> Mask:
    """Where one test of a label holds; for those who ask which of several does not."""
    return nodes.remember(("label", test), lambda: _by_label(nodes, test))


def field_test(nodes: Nodes, test: NodeSelectorRequirement) -> Mask:
    return nodes.remember(("field", test), lambda: _by_name(nodes, test))


def _picked(nodes: Nodes, selector: NodeSelector) -> Mask:
    mask = nobody(nodes)
    for term in selector.node_selector_terms:
        mask |= _by_term(nodes, term)
    return mask


def _by_term(nodes: Nodes, term: NodeSelectorTerm) -> Mask:
    """All tests must hold; a term without any picks nothing."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return nobody(nodes)
    mask = nodes.alive.copy()
    for test in expressions:
        mask &= _by_label(nodes, test)
    for test in fields:
        mask &= _by_name(nodes, test)
    return mask


def _without_names(selector: NodeSelector) -> NodeSelector:
    everywhere = NodeSelectorRequirement(key="", operator="DoesNotExist")
    terms = [
        NodeSelectorTerm(match_expressions=(*(term.match_expressions or ()), *((everywhere,) if term.match_fields else ())))
        for term in selector.node_selector_terms
    ]
    return NodeSelector(node_selector_terms=tuple(terms))


def _by_labels(nodes: Nodes, labels: tuple[tuple[str, str], ...]) -> Mask:
    mask = nodes.alive.copy()
    for key, value in labels:
        mask &= nodes.labels.column(key).one_of((value,))
    return mask


def _by_label(nodes: Nodes, test: NodeSelectorRequirement) -> Mask:
    column, values = nodes.labels.column(test.key), test.values or ()
    match test.operator:
        case "In":
            return column.one_of(values)
        case "NotIn":
            return ~column.one_of(values)
        case "Exists":
            return column.present()
        case "DoesNotExist":
            return ~column.present()
        case "Gt" | "Lt":
            bound = parse_int64(values[0]) if len(values) == 1 else None
            if bound is None:
                return nobody(nodes)
            return column.above(bound) if test.operator == "Gt" else column.below(bound)


def _by_name(nodes: Nodes, test: NodeSelectorRequirement) -> Mask:
    values = test.values or ()
    if test.key != NAME_FIELD or len(values) != 1 or test.operator not in ("In", "NotIn"):
        return nobody(nodes)
    mask = nobody(nodes)
    row = nodes.rows.get(values[0])
    if row is not None:
        mask[row] = True
    return mask if test.operator == "In" else ~mask


def nobody(nodes: Nodes) -> Mask:
    return np.zeros(nodes.capacity, dtype=np.bool_)
