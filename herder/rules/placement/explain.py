"""A decision, node by node: the first rule that says no, or how well it would do there."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from herder.api.core import Pod
from herder.rules.placement.decide import Decision, decide, message
from herder.rules.placement.needs import Needs, needs_of
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.reservations.ledger import Ledger
from herder.rules.reservations.owners import told_owners
from herder.rules.reservations.status import quantities
from herder.rules.reservations.taking import Candidate, take_reservation


class ReservedRow(msgspec.Struct, frozen=True, rename="camel"):
    reservation: str
    held: Mapping[str, str]
    # Who may take it; any of them.
    owners: tuple[str, ...]


class PlacementRow(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    fits: bool
    score: float | None = None
    # The first rule that says no, and all that it says, as the condition of the pod counts it.
    rule: str = ""
    reasons: tuple[str, ...] = ()
    # Of this node: the very selectors, taints, levels and amounts that say no.
    details: tuple[str, ...] = ()
    # What reservations hold there, and nobody has taken yet.
    reserved: tuple[ReservedRow, ...] = ()


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
    # The one that it would take; empty where there is none for it.
    reservation: str = ""


def explain(
    pod: Pod, snapshot: Snapshot, rules: tuple[Rule, ...], ledger: Ledger | None = None, now: float = 0.0
) -> PlacementExplanation:
    """As if it were placed now, even if it has a node. The snapshot is left without the pod."""
    ledger = ledger if ledger is not None else Ledger()
    _leave(pod, snapshot, ledger)
    needs = msgspec.structs.replace(needs_of(pod), node_name="")
    take = take_reservation(needs, map(Candidate, ledger.open_for(pod, now)), snapshot, rules)
    decision = decide(needs, snapshot, rules)
    rows = _rows(needs, snapshot, decision, ledger)
    # The best first, then those that do not fit, by name.
    rows.sort(key=lambda one: (one.score is None, -(one.score or 0.0), one.node))
    where = take.node if take is not None else decision.node
    text = "" if where else message(needs, decision, snapshot)
    taken = take.reservation.name if take is not None else ""
    return PlacementExplanation(pod.namespace, pod.name, pod.spec.node_name, where, text, tuple(rows), taken)


def _leave(pod: Pod, snapshot: Snapshot, ledger: Ledger) -> None:
    """Without the pod; a reservation that it took holds its room again."""
    snapshot.remove_pod((pod.namespace, pod.name))
    for name in ledger.remove_pod((pod.namespace, pod.name)):
        held = ledger.held(name)
        if held is not None:
            snapshot.put_pod(held.needs, held.node)


def _rows(needs: Needs, snapshot: Snapshot, decision: Decision, ledger: Ledger) -> list[PlacementRow]:
    details, reserved = _details(needs, snapshot, decision), _reserved(ledger)
    return [
        msgspec.structs.replace(_row(name, row, decision, details.get(row, ())), reserved=tuple(reserved.get(name, ())))
        for name, row in snapshot.nodes.rows.items()
    ]


def _reserved(ledger: Ledger) -> dict[str, list[ReservedRow]]:
    """By node."""
    found: dict[str, list[ReservedRow]] = {}
    for reservation in ledger.all():
        held = ledger.held(reservation.name)
        if held is not None:
            row = ReservedRow(reservation.name, quantities(held.needs.requests), told_owners(reservation))
            found.setdefault(held.node, []).append(row)
    return found


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
