"""Near to some pods, far from others: what the pod asks for, and what those that are there already will not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from herder.rules.placement.columns import Counts, LabelColumn, Mask, Scores
from herder.rules.placement.crowds import CrowdKey
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Needs
from herder.rules.placement.node_match import nobody
from herder.rules.placement.nodes import Nodes
from herder.rules.placement.rule import BEST, Refusal, Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.terms import Term
from herder.rules.placement.unmet import has

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_FAR = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"


class PodAffinity(Rule):
    name = "pod affinity"
    weight = 2.0
    listens = frozenset({What.NODE_CAME, What.NODE_CHANGED, What.NODE_WENT, What.POD_PLACED, What.POD_WENT, What.NAMESPACE_CHANGED})

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        forbidden = [(said.term, counts) for said, counts in snapshot.standing.about(pod) if not said.weight]
        if not pod.near and not pod.far and not forbidden:
            return ()
        away = _not_near(pod, snapshot) if pod.near else nobody(snapshot.nodes)
        close = nobody(snapshot.nodes)
        for term in pod.far:
            close |= _column(snapshot, term).sums(snapshot.crowds.count(CrowdKey((term.others,)))) > 0
        unwelcome = nobody(snapshot.nodes)
        for term, counts in forbidden:
            unwelcome |= _column(snapshot, term).sums(counts) > 0
        # Of these three, a node's reason is the first.
        close &= ~away
        return (Refusal(NOT_NEAR, away), Refusal(NOT_FAR, close), Refusal(UNWELCOME, unwelcome & ~(away | close)))

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        """Of the three reasons a node has the first."""
        not_near = _not_near(pod, snapshot) if pod.near else nobody(snapshot.nodes)
        near = _places(pod.near, snapshot.crowds.count(CrowdKey(tuple(term.others for term in pod.near))), snapshot)
        far = [(term, _places((term,), snapshot.crowds.count(CrowdKey((term.others,))), snapshot)[term]) for term in pod.far]
        standing = [(said.term, counts) for said, counts in snapshot.standing.about(pod) if not said.weight]
        against = [(term, _places((term,), counts, snapshot)[term]) for term, counts in standing]
        for row in rows:
            if not_near[row]:
                yield [said for term in pod.near if (said := _not_there(term, near[term], row, snapshot.nodes))]
            elif close := [term for term, there in far if there[row]]:
                yield [f"podAntiAffinity: pods with {_others(term)} are in {_place(term, row, snapshot.nodes)}" for term in close]
            else:
                unwelcome = [term for term, there in against if there[row]]
                yield [
                    f"podAntiAffinity of pods in {_place(term, row, snapshot.nodes)}: none with {_others(term)}"
                    for term in unwelcome
                ]

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        liked = np.zeros(snapshot.nodes.capacity)
        for wish in pod.wishes:
            liked += wish.weight * _column(snapshot, wish.term).sums(snapshot.crowds.count(CrowdKey((wish.term.others,))))
        for said, counts in snapshot.standing.about(pod):
            if said.weight:
                liked += said.weight * _column(snapshot, said.term).sums(counts)
        least = float(np.min(liked, where=fitting, initial=np.inf))
        most = float(np.max(liked, where=fitting, initial=-np.inf))
        return (liked - least) * (BEST / (most - least)) if most > least else None

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        other = event.pod
        if other is None:
            return True
        if event.what is What.POD_PLACED:
            return _speaks_of(pod.near, other, snapshot)
        return _speaks_of(pod.far, other, snapshot) or _speaks_of(other.far, pod, snapshot) or _speaks_of(pod.near, other, snapshot)


def _not_near(pod: Needs, snapshot: Snapshot) -> Mask:
    """Pods that all of the terms speak of must be in the same place, for each of the terms' keys. The first pod of a group that
    wants to be near itself may go anywhere that has these keys."""
    there = snapshot.crowds.count(CrowdKey(tuple(term.others for term in pod.near)))
    labelled, near, anybody = snapshot.nodes.alive, snapshot.nodes.alive, False
    for term in pod.near:
        column = _column(snapshot, term)
        sums = column.sums(there)
        labelled, near = labelled & column.present(), near & (sums > 0)
        anybody = anybody or bool(sums.any())
    if not anybody and all(_includes(term, pod, snapshot) for term in pod.near):
        return ~labelled
    return ~(labelled & near)


def _places(terms: tuple[Term, ...], counts: Counts, snapshot: Snapshot) -> dict[Term, Mask]:
    """Where a term's place has some of those that were counted."""
    return {term: _column(snapshot, term).sums(counts) > 0 for term in terms}


def _not_there(term: Term, there: Mask, row: int, nodes: Nodes) -> str:
    if term.topology_key not in nodes.labels.of(row):
        return f"podAffinity: {has(nodes, term.topology_key, row)}"
    return "" if there[row] else f"podAffinity: no pod with {_others(term)} is in {_place(term, row, nodes)}"


def _place(term: Term, row: int, nodes: Nodes) -> str:
    return f"{term.topology_key}={nodes.labels.of(row).get(term.topology_key, '')}"


def _others(term: Term) -> str:
    return str(term.others.selector) or "any labels"


def _column(snapshot: Snapshot, term: Term) -> LabelColumn:
    return snapshot.nodes.labels.column(term.topology_key)


def _speaks_of(terms: tuple[Term, ...], pod: Needs, snapshot: Snapshot) -> bool:
    return any(_includes(term, pod, snapshot) for term in terms)


def _includes(term: Term, pod: Needs, snapshot: Snapshot) -> bool:
    return term.others.include(pod.namespace, pod.labels, snapshot.namespaces.get(pod.namespace, {}))
