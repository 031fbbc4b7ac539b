"""A cordoned node takes no new pods, unless they tolerate it; one that is being deleted takes none at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herder.api.core.nodes import Taint
from herder.rules.matching.taints import tolerates
from herder.rules.placement.events import Event
from herder.rules.placement.needs import Needs
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

REASON = "node(s) were unschedulable"
LEAVING = "node(s) were being deleted"
TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Cordon(Rule):
    name = "cordon"

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        cordoned, leaving = snapshot.nodes.cordoned, snapshot.nodes.leaving
        refusals = [Refusal(LEAVING, leaving)] if leaving.any() else []
        if cordoned.any() and not any(tolerates(one, TAINT) for one in pod.tolerations):
            refusals.append(Refusal(REASON, cordoned))
        return refusals

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        leaving = snapshot.nodes.leaving
        return (["the node is being deleted" if leaving[row] else "the node is cordoned (spec.unschedulable)"] for row in rows)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        was = event.before is None or event.before.unschedulable
        return event.after is not None and was and not event.after.unschedulable
