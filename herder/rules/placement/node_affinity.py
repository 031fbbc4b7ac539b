"""The node's labels and name: nodeSelector, and the required and preferred node affinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.events import Event
from herder.rules.placement.needs import Needs
from herder.rules.placement.node_match import picked, picked_by_labels, picked_by_term
from herder.rules.placement.rule import Refusal, Rule, refuses, share_of_best
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.unmet import unmet_labels, unmet_selector

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(Rule):
    name = "node affinity"
    weight = 2.0

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if not pod.node_selector and pod.required_nodes is None:
            return ()
        return (Refusal(REASON, ~allowed_nodes(pod, snapshot)),)

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        for row in rows:
            required = pod.required_nodes
            of_affinity = unmet_selector(snapshot.nodes, required, row) if required is not None else ()
            yield [*unmet_labels(snapshot.nodes, pod.node_selector, row), *of_affinity]

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        if not pod.preferred_nodes:
            return None
        liked = np.zeros(snapshot.nodes.capacity, dtype=np.float64)
        for wish in pod.preferred_nodes:
            liked += wish.weight * picked_by_term(snapshot.nodes, wish.preference)
        return share_of_best(liked, fitting)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        if event.before is not None and event.after is not None and event.before.labels == event.after.labels:
            return False
        return not refuses(self, pod, event.node, snapshot)


def allowed_nodes(pod: Needs, snapshot: Snapshot) -> Mask:
    mask = picked_by_labels(snapshot.nodes, pod.node_selector)
    if pod.required_nodes is not None:
        mask = mask & picked(snapshot.nodes, pod.required_nodes)
    return mask
