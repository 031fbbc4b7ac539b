"""One pod, all nodes: which fit, which is best, and why the others are not. The scheduler and `explain` ask the same question."""

from __future__ import annotations

import msgspec
import numpy as np

from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.needs import Needs
from herder.rules.placement.resources import Resources, fits_without
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

LOWER_PRIORITY = "{} node(s) would have room without pods of lower priority; they are not preempted"


class Refused(msgspec.Struct, frozen=True, eq=False):
    """By whom, why, and which nodes of those that all rules before had let pass."""

    rule: Rule
    refusal: Refusal


class Decision(msgspec.Struct, frozen=True, eq=False):
    # The node to take; empty where there is none.
    node: str
    fitting: Mask
    refused: tuple[Refused, ...] = ()
    scores: Scores | None = None
    # Where no node was looked at, because the pod has to wait: who says so, and why.
    waits_for: Rule | None = None
    sentence: str = ""

    def rules(self) -> tuple[Rule, ...]:
        """Those that said no somewhere: what changes their minds may let the pod in."""
        if self.waits_for is not None:
            return (self.waits_for,)
        return tuple(dict.fromkeys(one.rule for one in self.refused))


def decide(pod: Needs, snapshot: Snapshot, rules: tuple[Rule, ...]) -> Decision:
    for rule in rules:
        sentence = rule.refuse_all(pod, snapshot)
        if sentence:
            return Decision("", np.zeros_like(snapshot.nodes.alive), waits_for=rule, sentence=sentence)
    fitting, refused = filtered(pod, snapshot, rules)
    if not fitting.any():
        return Decision("", fitting, refused)
    scores = scored(pod, snapshot, rules, fitting)
    return Decision(_best(snapshot, fitting, scores), fitting, refused, scores)


def filtered(pod: Needs, snapshot: Snapshot, rules: tuple[Rule, ...]) -> tuple[Mask, tuple[Refused, ...]]:
    fitting = snapshot.nodes.alive.copy()
    refused: list[Refused] = []
    for rule in rules:
        before = fitting
        for refusal in rule.refuse(pod, snapshot):
            said = refusal.nodes & before
            if said.any():
                refused.append(Refused(rule, Refusal(refusal.reason, said)))
                fitting = fitting & ~said
        if fitting is not before and not fitting.any():
            break
    return fitting, tuple(refused)


def scored(pod: Needs, snapshot: Snapshot, rules: tuple[Rule, ...], fitting: Mask) -> Scores:
    total = np.zeros(snapshot.nodes.capacity)
    for rule in rules:
        scores = rule.score(pod, snapshot, fitting)
        if scores is not None:
            total += rule.weight * scores
    return total


def still_fits(pod: Needs, node: str, snapshot: Snapshot, rules: tuple[Rule, ...]) -> bool:
    """Asked again right before a pod is bound, with the pod itself already counted there: only what the node itself says."""
    row = snapshot.nodes.rows.get(node)
    return row is not None and not any(bool(one.nodes[row]) for rule in rules for one in rule.refuse(pod, snapshot))


def message(pod: Needs, decision: Decision, snapshot: Snapshot) -> str:
    """As kube-scheduler's, but for what it says about preemption: there is none, and who is in the way is said."""
    start = f"0/{len(snapshot.nodes)} nodes are available:"
    if decision.sentence:
        return f"{start} {decision.sentence}."
    counts: dict[str, int] = {}
    for one in decision.refused:
        reason = one.refusal.reason
        counts[reason] = counts.get(reason, 0) + int(np.count_nonzero(one.refusal.nodes))
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    text = f"{start} {listed}." if listed else "no nodes available to schedule pods"
    blocked = _blocked_by_lower(pod, decision, snapshot)
    return f"{text} {LOWER_PRIORITY.format(blocked)}." if blocked else text


def _blocked_by_lower(pod: Needs, decision: Decision, snapshot: Snapshot) -> int:
    if not any(priority < pod.priority for priority in snapshot.by_priority):
        return 0
    full = np.zeros_like(decision.fitting)
    for one in decision.refused:
        if isinstance(one.rule, Resources):
            full |= one.refusal.nodes
    return int(np.count_nonzero(full & fits_without(pod, snapshot, pod.priority))) if full.any() else 0


def _best(snapshot: Snapshot, fitting: Mask, scores: Scores) -> str:
    """Of equally good ones the first by name, so that the same question has the same answer."""
    candidates = np.flatnonzero(fitting)
    values = scores[candidates]
    best = candidates[values >= values.max() - 1e-9]
    row = int(best[np.argmin(snapshot.nodes.order()[best])])
    return snapshot.nodes.offers[row].name
