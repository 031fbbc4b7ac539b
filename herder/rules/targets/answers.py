"""What is said of the targets of one migration: a row per node, the sentence for its status, and whether waiting is any use."""

from __future__ import annotations

import msgspec
import numpy as np

from herder.api import labels, reasons
from herder.rules.placement import Snapshot
from herder.rules.targets.details import Details, details_of
from herder.rules.targets.merging import Impossible, contradiction
from herder.rules.targets.nodes import Asked, Judged, Masks, judge_nodes, masks_of
from herder.rules.targets.words import OTHER_CPU, OTHER_RUNTIME, OWN_RULES, SOURCE, Phrase, excluded, sentence


class TargetRow(msgspec.Struct, frozen=True, gc=False):
    node: str
    fits: bool
    why: str = ""
    score: float | None = None
    # The very selector, feature, taint or amount that says no; empty unless it was asked for.
    details: tuple[str, ...] = ()


class TargetExplanation(msgspec.Struct, frozen=True):
    # The node that the scheduler would take; empty where there is none.
    node: str
    # "0/5 nodes: 2 lack cpu, ..."
    summary: str
    # Where waiting is no use.
    impossible: Impossible | None
    rows: tuple[TargetRow, ...]


def explain_target(asked: Asked, snapshot: Snapshot, *, detailed: bool = False) -> TargetExplanation:
    """Those that fit, best first, then the others by name. `detailed` is for those who may read nodes."""
    judged = judge_nodes(asked, snapshot)
    rows = tuple(_rows(judged, snapshot, details_of(asked, judged, snapshot) if detailed else {}))
    return TargetExplanation(judged.decision.node, _summary(judged, snapshot), impossible(asked, snapshot), rows)


def why_waiting(asked: Asked, snapshot: Snapshot) -> str:
    """For the status of a migration that waits for a node."""
    return _summary(judge_nodes(asked, snapshot), snapshot)


def impossible(asked: Asked, snapshot: Snapshot) -> Impossible | None:
    """What no node there is satisfies, whatever room there is and whatever taints come and go. None: it may pass, so wait."""
    named = _named(asked, snapshot)
    if named is not None:
        return named
    own = {key: value for key, value in asked.pod.spec.node_selector.items() if key != labels.SCHEDULABLE}
    conflict = contradiction(own, asked.added)
    if conflict is not None:
        return conflict
    masks = masks_of(asked, snapshot)
    return None if (masks.wanted & ~masks.source).any() else _no_node(asked, masks, snapshot)


def _named(asked: Asked, snapshot: Snapshot) -> Impossible | None:
    for name in asked.added.names:
        if name not in snapshot.nodes.rows:
            return Impossible(reasons.NODE_NOT_FOUND, f"{asked.added.said_by} names node {name}, which does not exist")
        if name == asked.source:
            return Impossible(reasons.ALREADY_ON_NODE, f"{asked.added.said_by} names node {name}, where the guest already runs")
    return None


def _no_node(asked: Asked, masks: Masks, snapshot: Snapshot) -> Impossible:
    if not asked.added.nothing and (masks.wanted & masks.source).any():
        said = f"{asked.source}, where the guest already runs, is the only node that satisfies {asked.added.said_by}"
        return Impossible(reasons.ALREADY_ON_NODE, f"{said} and the machine's own node rules")
    but_for_cpu = masks.own & masks.added & masks.runtime & ~masks.source
    reason = reasons.MISSING_CPU_FEATURES if but_for_cpu.any() else reasons.NO_MATCHING_NODE
    return Impossible(reason, sentence(0, len(snapshot.nodes), _lasting(asked, masks, snapshot)))


def _lasting(asked: Asked, masks: Masks, snapshot: Snapshot) -> list[tuple[Phrase, int]]:
    """Each node once, with the first that holds."""
    counts: list[tuple[Phrase, int]] = []
    left = snapshot.nodes.alive
    said = (
        (SOURCE, masks.source),
        (excluded(asked.added.said_by), ~masks.added),
        (OTHER_RUNTIME, ~masks.runtime),
        (OTHER_CPU, ~masks.cpu),
        (OWN_RULES, ~masks.own),
    )
    for phrase, where in said:
        here = left & where
        counts += [(phrase, int(np.count_nonzero(here)))] if here.any() else []
        left = left & ~here
    return counts


def _summary(judged: Judged, snapshot: Snapshot) -> str:
    return sentence(int(np.count_nonzero(judged.decision.fitting)), len(snapshot.nodes), judged.counted())


def _rows(judged: Judged, snapshot: Snapshot, details: Details) -> list[TargetRow]:
    nodes, decision = snapshot.nodes, judged.decision
    scores = decision.scores if decision.scores is not None else np.zeros(nodes.capacity)
    there = np.flatnonzero(nodes.alive)
    fits = decision.fitting[there]
    places = np.lexsort((nodes.order()[there], np.where(fits, -scores[there], 0.0), ~fits))
    words = [phrase.one for phrase in judged.phrases]
    made: list[TargetRow] = []
    for row, number in zip(there[places].tolist(), judged.numbers[there[places]].tolist(), strict=True):
        name = nodes.offers[row].name
        if number:
            made.append(TargetRow(name, False, words[number], details=details.get(row, ())))
        else:
            made.append(TargetRow(name, True, "", float(scores[row])))
    return made
