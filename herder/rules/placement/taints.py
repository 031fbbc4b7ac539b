"""Taints keep pods away that do not tolerate them; PreferNoSchedule only makes a node less liked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from herder.api.core.nodes import Taint
from herder.api.meta import Toleration
from herder.rules.matching.taints import tolerates, untolerated
from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.events import Event
from herder.rules.placement.needs import Needs
from herder.rules.placement.nodes import Nodes
from herder.rules.placement.rule import BEST, Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

REASON = "node(s) had untolerated taint(s)"
AVOID = "PreferNoSchedule"


class Taints(Rule):
    name = "taints"
    weight = 3.0

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if len(snapshot.nodes.taint_sets) == 1:
            return ()
        return (Refusal(REASON, kept_away(snapshot.nodes, pod.tolerations)),)

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        for row in rows:
            taints = snapshot.nodes.taint_sets[snapshot.nodes.taints[row]]
            yield [f"taint {told(one)} is not tolerated" for one in taints if untolerated((one,), pod.tolerations) is not None]

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        nodes = snapshot.nodes
        if not any(taint.effect == AVOID for taints in nodes.taint_sets for taint in taints):
            return None
        disliked = np.array([_disliked(taints, pod.tolerations) for taints in nodes.taint_sets], dtype=np.float64)[nodes.taints]
        worst = float(np.max(disliked, where=fitting, initial=0.0))
        return BEST - disliked * (BEST / worst) if worst else None

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        was = event.before is None or untolerated(event.before.taint_views(), pod.tolerations) is not None
        return event.after is not None and was and untolerated(event.after.taint_views(), pod.tolerations) is None


def told(taint: Taint) -> str:
    """As kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def kept_away(nodes: Nodes, tolerations: tuple[Toleration, ...]) -> Mask:
    """Asked once for each set of taints, not for each node."""
    return nodes.remember(("taints", tolerations), lambda: _kept_away(nodes, tolerations))


def _kept_away(nodes: Nodes, tolerations: tuple[Toleration, ...]) -> Mask:
    return np.array([untolerated(taints, tolerations) is not None for taints in nodes.taint_sets], dtype=np.bool_)[nodes.taints]


def _disliked(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(taint.effect == AVOID and not any(tolerates(one, taint) for one in tolerations) for taint in taints)
