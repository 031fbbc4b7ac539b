"""An affinity of which every term names its nodes: no others are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herder.api.meta import NodeSelectorTerm
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Needs
from herder.rules.placement.node_match import NAME_FIELD
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.unmet import unmet_selector

REASON = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
CONFLICT = "pod affinity terms conflict"


class NamedNodes(Rule):
    name = "named nodes"
    listens = frozenset({What.NODE_CAME})

    def refuse_all(self, pod: Needs, snapshot: Snapshot) -> str:
        named = _named(pod)
        return CONFLICT if named is not None and not named else ""

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        named = _named(pod)
        if named is None:
            return ()
        others = snapshot.nodes.alive.copy()
        for row in (snapshot.nodes.rows.get(name) for name in named):
            if row is not None:
                others[row] = False
        return (Refusal(REASON, others),)

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        required = pod.required_nodes
        return (list(unmet_selector(snapshot.nodes, required, row)) if required is not None else [] for row in rows)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        return event.node in (_named(pod) or ())


def _named(pod: Needs) -> set[str] | None:
    """None where some term is about any node."""
    if pod.required_nodes is None or not pod.required_nodes.node_selector_terms:
        return None
    named: set[str] = set()
    for term in pod.required_nodes.node_selector_terms:
        of_term = _names_in(term)
        if of_term is None:
            return None
        named |= of_term
    return named


def _names_in(term: NodeSelectorTerm) -> set[str] | None:
    tests = [test for test in term.match_fields or () if test.key == NAME_FIELD and test.operator == "In"]
    sets = [set(test.values or ()) for test in tests]
    return set.intersection(*sets) if sets else None
