"""The shape of a rule: which nodes it refuses, how it likes the others, and what could change its mind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
import numpy as np

from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Needs
from herder.rules.placement.snapshot import Snapshot

BEST = 100.0
NODE_EVENTS = frozenset({What.NODE_CAME, What.NODE_CHANGED})


class Refusal(msgspec.Struct, frozen=True, eq=False):
    """Nodes, and why not: a constant, in kube-scheduler's words."""

    reason: str
    nodes: Mask


class Rule:
    """Each rule is one module. All of its methods are pure: the pod and the cluster in, an answer out."""

    name: ClassVar[str] = ""
    weight: ClassVar[float] = 1.0
    # What may make it say yes where it said no. Nothing else wakes a pod that it refused.
    listens: ClassVar[frozenset[What]] = NODE_EVENTS

    def refuse_all(self, pod: Needs, snapshot: Snapshot) -> str:
        """A sentence where the pod has to wait wherever it would go."""
        return ""

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        """Of all nodes; nothing where the rule has nothing to say about this pod."""
        return ()

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        """For `explain`: of each of these nodes, all of which it refuses, the very selector, taint or amount that says no. Nothing
        where the reason says it all. The scheduler counts nodes by reason and never asks this, so it may take its time."""
        return ([] for _ in rows)

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        """From 0 to 100 for the nodes that fit; the others do not matter. None: all alike."""
        return None

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        """Whether a pod that was refused by this rule may be let in now. The snapshot shows the event already."""
        return True


def refuses(rule: Rule, pod: Needs, node: str, snapshot: Snapshot) -> bool:
    """Whether it refuses this one node, as things are."""
    row = snapshot.nodes.rows.get(node)
    return row is None or any(bool(refusal.nodes[row]) for refusal in rule.refuse(pod, snapshot))


def share_of_best(raw: Scores, fitting: Mask) -> Scores | None:
    """The best of those that fit gets 100, the others their share of it."""
    best = float(np.max(raw, where=fitting, initial=0.0))
    return raw * (BEST / best) if best > 0 else None
