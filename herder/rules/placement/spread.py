"""Topology spread: no place may have many more of a pod's kind than another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.crowds import CrowdKey
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Needs, Spread
from herder.rules.placement.node_affinity import allowed_nodes
from herder.rules.placement.node_match import nobody
from herder.rules.placement.nodes import Nodes
from herder.rules.placement.rule import BEST, Refusal, Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.taints import kept_away
from herder.rules.placement.unmet import has

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"


class TopologySpread(Rule):
    name = "topology spread"
    weight = 2.0
    listens = frozenset({What.NODE_CAME, What.NODE_CHANGED, What.NODE_WENT, What.POD_PLACED, What.POD_WENT})

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if not pod.must_spread:
            return ()
        labelled = _with_all_labels(pod.must_spread, snapshot)
        uneven, unlabelled = nobody(snapshot.nodes), nobody(snapshot.nodes)
        for constraint in pod.must_spread:
            present = snapshot.nodes.labels.column(constraint.topology_key).present()
            # Of a node's constraints the first that fails is its reason.
            unlabelled |= ~present & ~uneven
            uneven |= present & ~unlabelled & _too_uneven(pod, constraint, labelled, snapshot)
        return (Refusal(NO_LABEL, unlabelled), Refusal(UNEVEN, uneven))

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        labelled = _with_all_labels(pod.must_spread, snapshot)
        crowds = [(one, *_crowd_with(pod, one, labelled, snapshot)) for one in pod.must_spread]
        for row in rows:
            yield [said for one, after, least in crowds if (said := _why_not(one, after, least, row, snapshot.nodes))]

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        if not pod.should_spread:
            return None
        labelled = _with_all_labels(pod.should_spread, snapshot)
        judged = labelled & fitting
        raw = np.zeros(snapshot.nodes.capacity)
        for constraint in pod.should_spread:
            raw += _crowding(pod, constraint, labelled, judged, snapshot)
        raw = np.rint(raw)
        most = float(np.max(raw, where=judged, initial=0.0))
        if not most:
            return np.where(judged, BEST, 0.0)
        least = float(np.min(raw, where=judged, initial=most))
        return np.where(judged, (most + least - raw) * (BEST / most), 0.0)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        """A pod of the kind that comes raises the least, one that goes makes room; a node is a place more, or one less."""
        if event.pod is None:
            return True
        other = event.pod
        return any(
            one.others.include(other.namespace, other.labels, snapshot.namespaces.get(other.namespace, {}))
            for one in pod.must_spread
        )


def _too_uneven(pod: Needs, constraint: Spread, labelled: Mask, snapshot: Snapshot) -> Mask:
    after, least = _crowd_with(pod, constraint, labelled, snapshot)
    return (after - least > constraint.max_skew)[snapshot.nodes.labels.column(constraint.topology_key).codes]


def _crowd_with(pod: Needs, constraint: Spread, labelled: Mask, snapshot: Snapshot) -> tuple[Scores, float]:
    """How many of the kind each place would have with the pod, by number of the place; and how many the emptiest has now."""
    column = snapshot.nodes.labels.column(constraint.topology_key)
    counting = _counting(pod, constraint, labelled, snapshot)
    totals = column.totals(_numbers(constraint, snapshot) * counting)
    places = np.zeros(column.places, dtype=np.bool_)
    places[column.codes[counting]] = True
    least = float(totals[places].min()) if int(places.sum()) >= constraint.min_domains else 0.0
    own = int(constraint.others.selector.matches(pod.labels))
    return totals + own, least


def _why_not(constraint: Spread, after: Scores, least: float, row: int, nodes: Nodes) -> str:
    key = constraint.topology_key
    if key not in nodes.labels.of(row):
        return f"topologySpreadConstraints: {has(nodes, key, row)}"
    there = float(after[nodes.labels.column(key).codes[row]])
    if there - least <= constraint.max_skew:
        return ""
    skew = f"with this pod {int(there)} there, {int(least)} where there are fewest: maxSkew is {constraint.max_skew}"
    return f"topologySpreadConstraints {key}={nodes.labels.of(row)[key]}: {skew}"


def _crowding(pod: Needs, constraint: Spread, labelled: Mask, judged: Mask, snapshot: Snapshot) -> Scores:
    """The more places there are, the more each of their pods counts: else a key with many places would say little."""
    column = snapshot.nodes.labels.column(constraint.topology_key)
    counting = _counting(pod, constraint, labelled, snapshot)
    places = len(np.unique(column.codes[judged]))
    return column.sums(_numbers(constraint, snapshot) * counting) * math.log(places + 2) + (constraint.max_skew - 1)


def _counting(pod: Needs, constraint: Spread, labelled: Mask, snapshot: Snapshot) -> Mask:
    """The nodes whose pods count."""
    mask = labelled
    if constraint.honor_affinity and (pod.node_selector or pod.required_nodes is not None):
        mask = mask & allowed_nodes(pod, snapshot)
    if constraint.honor_taints:
        mask = mask & ~kept_away(snapshot.nodes, pod.tolerations)
    return mask


def _numbers(constraint: Spread, snapshot: Snapshot) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """A selector that picks everything counts nothing, as in kube-scheduler."""
    if constraint.others.selector.empty:
        return np.zeros(snapshot.nodes.capacity, dtype=np.int32)
    return snapshot.crowds.count(CrowdKey((constraint.others,), leaving_too=False))


def _with_all_labels(constraints: tuple[Spread, ...], snapshot: Snapshot) -> Mask:
    mask = snapshot.nodes.alive
    for one in constraints:
        mask = mask & snapshot.nodes.labels.column(one.topology_key).present()
    return mask
