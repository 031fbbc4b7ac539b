"""Which other pods a pod speaks of, in its affinities and in how it wants to be spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from herder.api.meta import LabelSelector, PodAffinityTerm
from herder.api.selectors import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    IN,
    NOT_IN,
    NOTHING,
    Requirement,
    Selector,
)

_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}


class Others(msgspec.Struct, frozen=True):
    """Pods by namespace and label. Equal ones are counted once, whoever asks."""

    namespaces: tuple[str, ...]
    # Further namespaces, by their labels; NOTHING where none are meant.
    namespace_selector: Selector
    selector: Selector

    def include(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)

    @property
    def by_namespace_labels(self) -> bool:
        return bool(self.namespace_selector.requirements)


class Term(msgspec.Struct, frozen=True):
    """Others, and the node label whose values are the places in which they are near."""

    others: Others
    topology_key: str


class Weighted(msgspec.Struct, frozen=True):
    term: Term
    # Below zero for a wish to be far away.
    weight: int


def selector_of(given: LabelSelector | None) -> Selector:
    """No selector picks nothing, an empty one everything."""
    if given is None:
        return NOTHING
    made = [Requirement(key, IN, (value,)) for key, value in (given.match_labels or {}).items()]
    made += [Requirement(one.key, _OPERATORS[one.operator], one.values or ()) for one in given.match_expressions or ()]
    return Selector(made) if made else EVERYTHING


def narrowed(selector: Selector, keys: Sequence[str], labels: Mapping[str, str], operator: str = IN) -> Selector:
    """With the pod's own values of these labels. An API server may have written them into the selector already: the same again
    changes nothing, and is left out so that equal selectors are equal."""
    more = [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]
    more = [one for one in more if one not in selector.requirements]
    if not more or not selector.selectable:
        return selector
    return Selector((*selector.requirements, *more))


def term_of(given: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> Term:
    selector = narrowed(selector_of(given.label_selector), given.match_label_keys or (), labels)
    selector = narrowed(selector, given.mismatch_label_keys or (), labels, NOT_IN)
    # Said nothing about namespaces: the own one.
    named = given.namespaces or (() if given.namespace_selector is not None else (namespace,))
    further = selector_of(given.namespace_selector)
    return Term(Others(tuple(sorted(named)), further, selector), given.topology_key)
