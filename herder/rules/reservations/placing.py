"""Where a reservation goes: like a pod of its template."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from herder.rules.placement.decide import Decision, decide
from herder.rules.placement.needs import Needs
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import PodKey, Snapshot


def place_reservation(needs: Needs, snapshot: Snapshot, rules: tuple[Rule, ...], leaves: PodKey | None = None) -> Decision:
    """`leaves`: the pod that a job is going to evict once the room is held. Its neighbours, its spread and its claims are judged as
    if it were gone; its own node is not for the reservation, as the template says."""
    with without(snapshot, leaves):
        return decide(needs, snapshot, rules)


@contextmanager
def without(snapshot: Snapshot, key: PodKey | None) -> Generator[None]:
    """The cluster as it would be without that pod, or without what a reservation holds."""
    placed = snapshot.remove_pod(key) if key is not None else None
    try:
        yield
    finally:
        if placed is not None:
            snapshot.put_pod(placed.needs, placed.node)
