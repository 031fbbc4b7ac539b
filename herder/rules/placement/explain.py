"""A decision, node by node: the first rule that says no, or how well it would do there."""

from __future__ import annotations

import msgspec

from herder.api.core import Pod
from herder.rules.placement.decide import Decision, decide, message
from herder.rules.placement.needs import needs_of
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import Snapshot


class Row(msgspec.Struct, frozen=True):
    node: str
    # Empty where the node fits.
    rule: str = ""
    reasons: tuple[str, ...] = ()
    score: float | None = None


class Explanation(msgspec.Struct, frozen=True):
    # The node that it would get; empty where none will have it.
    node: str
    message: str
    # Where it is already.
    runs_on: str
    rows: tuple[Row, ...]


def explain(pod: Pod, snapshot: Snapshot, rules: tuple[Rule, ...]) -> Explanation:
    """As if it were placed now, even if it has a node. The snapshot is left without the pod."""
    snapshot.remove_pod((pod.namespace, pod.name))
    needs = msgspec.structs.replace(needs_of(pod), node_name="")
    decision = decide(needs, snapshot, rules)
    rows = [_row(name, row, decision) for name, row in snapshot.nodes.rows.items()]
    # The best first, then those that do not fit, by name.
    rows.sort(key=lambda one: (one.score is None, -(one.score or 0.0), one.node))
    text = "" if decision.node else message(needs, decision, snapshot)
    return Explanation(decision.node, text, pod.spec.node_name, tuple(rows))


def _row(name: str, row: int, decision: Decision) -> Row:
    if decision.waits_for is not None:
        return Row(name, decision.waits_for.name, (decision.sentence,))
    said = [one for one in decision.refused if one.refusal.nodes[row]]
    if said:
        return Row(name, said[0].rule.name, tuple(one.refusal.reason for one in said))
    return Row(name, score=float(decision.scores[row]) if decision.scores is not None else None)
