"""A pod that names its node goes there and nowhere else. Such pods are bound already; `explain` asks about them all the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herder.rules.placement.events import Event
from herder.rules.placement.needs import Needs
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

REASON = "node(s) didn't match the requested node name"


class NodeName(Rule):
    name = "node name"

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if not pod.node_name:
            return ()
        others = snapshot.nodes.alive.copy()
        row = snapshot.nodes.rows.get(pod.node_name)
        if row is not None:
            others[row] = False
        return (Refusal(REASON, others),)

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        return ([f"nodeName {pod.node_name}: the node is {snapshot.nodes.offers[row].name}"] for row in rows)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        return event.node == pod.node_name
