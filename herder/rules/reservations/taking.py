"""Whether a pod takes a reservation: before any other node is considered, or it would go back to the node that it just left."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api.kinds import ReservationView
from herder.rules.placement.decide import Refused, filtered
from herder.rules.placement.needs import Needs
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import PodKey, Snapshot
from herder.rules.reservations.placing import without

# A pod that none of so many will have is placed as any other: each costs a look at all rules.
MOST_TRIED = 32
WAITS = "the room that reservation {} holds on node {} fits once pod {} has ended"


class Take(msgspec.Struct, frozen=True, eq=False):
    """What it takes; or what it waits for, because it fits once a pod has gone that is on its way out."""

    reservation: ReservationView
    node: str
    waits_for: tuple[Rule, ...] = ()
    sentence: str = ""


class Candidate(msgspec.Struct, frozen=True):
    reservation: ReservationView
    # The pod whose place the taker gets, while it is still there and about to go.
    leaves: PodKey | None = None


def take_reservation(needs: Needs, candidates: Iterable[Candidate], snapshot: Snapshot, rules: tuple[Rule, ...]) -> Take | None:
    """The first that fits; else the first that will. The snapshot shows what each holds under its name in no namespace."""
    later: Take | None = None
    for number, one in zip(range(MOST_TRIED), candidates, strict=False):
        if number == 0 and any(rule.refuse_all(needs, snapshot) for rule in rules):
            return None  # it has to wait wherever it would go: a claim of it is not there yet, or has no volume
        reservation, node = one.reservation, one.reservation.status.node_name or ""
        with without(snapshot, held_key(reservation.name)):
            refused = refused_on(needs, node, snapshot, rules)
            if refused == ():
                return Take(reservation, node)
            if later is None and refused and one.leaves is not None and snapshot.placed(one.leaves) is not None:
                with without(snapshot, one.leaves):
                    if refused_on(needs, node, snapshot, rules) == ():
                        said = WAITS.format(reservation.name, node, "/".join(one.leaves))
                        later = Take(reservation, node, tuple(dict.fromkeys(each.rule for each in refused)), said)
    return later


def held_key(name: str) -> PodKey:
    """Under which the snapshot has what a reservation holds: pods have a namespace."""
    return ("", name)


def refused_on(needs: Needs, node: str, snapshot: Snapshot, rules: tuple[Rule, ...]) -> tuple[Refused, ...] | None:
    """Who refuses this one node, and why; nothing where it fits; None where there is no such node."""
    row = snapshot.nodes.rows.get(node)
    if row is None:
        return None
    _, refused = filtered(needs, snapshot, rules)
    return tuple(one for one in refused if one.refusal.nodes[row])
