"""A decision, node by node: the first rule that says no, or how well it would do there."""

from __future__ import annotations

import msgspec
import numpy as np

from herder.api.core import Pod
from herder.rules.placement.decide import Decision, decide, message
from herder.rules.placement.needs import Needs, needs_of
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import Snapshot


class PlacementRow(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    fits: bool
    score: float | None = None
    # The first rule that says no, and all that it says, as the condition of the pod counts it.
    rule: str = ""
    reasons: tuple[str, ...] = ()
    # Of this node: the very selectors, taints, levels and amounts that say no.
    details: tuple[str, ...] = ()


class PlacementExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    # Of the pod.
    name: str
    # Where it is already; empty where it is nowhere.
    node_name: str
    # The node that it would get; empty where none will have it.
    target_node: str
    # As in the condition of a pod that no node will have; empty where one will.
    message: str
    nodes: tuple[PlacementRow, ...]


def explain(pod: Pod, snapshot: Snapshot, rules: tuple[Rule, ...]) -> PlacementExplanation:
    """As if it were placed now, even if it has a node. The snapshot is left without the pod."""
    snapshot.remove_pod((pod.namespace, pod.name))
    needs = msgspec.structs.replace(needs_of(pod), node_name="")
    decision = decide(needs, snapshot, rules)
    rows = _rows(needs, snapshot, decision)
    # The best first, then those that do not fit, by name.
    rows.sort(key=lambda one: (one.score is None, -(one.score or 0.0), one.node))
    text = "" if decision.node else message(needs, decision, snapshot)
    return PlacementExplanation(pod.namespace, pod.name, pod.spec.node_name, decision.node, text, tuple(rows))


def _rows(needs: Needs, snapshot: Snapshot, decision: Decision) -> list[PlacementRow]:
    details = _details(needs, snapshot, decision)
    return [_row(name, row, decision, details.get(row, ())) for name, row in snapshot.nodes.rows.items()]


def _details(needs: Needs, snapshot: Snapshot, decision: Decision) -> dict[int, tuple[str, ...]]:
    """Each rule is asked once, about all nodes that it refused; a node is refused by one rule, after which no other is asked."""
    refused: dict[Rule, dict[int, None]] = {}
    for one in decision.refused:
        refused.setdefault(one.rule, {}).update(dict.fromkeys(np.flatnonzero(one.refusal.nodes).tolist()))
    return {
        row: tuple(said)
        for rule, rows in refused.items()
        for row, said in zip(rows, rule.details(needs, list(rows), snapshot), strict=True)
    }


def _row(name: str, row: int, decision: Decision, details: tuple[str, ...]) -> PlacementRow:
    if decision.waits_for is not None:
        return PlacementRow(name, False, rule=decision.waits_for.name, reasons=(decision.sentence,))
    said = [one for one in decision.refused if one.refusal.nodes[row]]
    if said:
        reasons = tuple(one.refusal.reason for one in said)
        return PlacementRow(name, False, rule=said[0].rule.name, reasons=reasons, details=details)
    return PlacementRow(name, True, float(decision.scores[row]) if decision.scores is not None else None)
