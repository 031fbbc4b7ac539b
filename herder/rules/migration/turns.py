"""Whose turn it is: the limits of the cluster and of each node are never exceeded, the most urgent go first, then the oldest.

Counted from the objects alone: after a restart, or under another leader, the count is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from herder.api import reasons
from herder.api.kinds.migration import MigrationPhase, VirtualMachineInstanceMigration
from herder.rules.migration.phases import COMING_IN, FINISHED, phase_of, source_of, target_of
from herder.rules.migration.waiting import Name, Waiting, ticket_of


class Limits(msgspec.Struct, frozen=True):
    cluster: int = 5
    outbound: int = 2
    inbound: int = 2


class _Place(msgspec.Struct, frozen=True):
    """Where a migration under way counts."""

    source: str
    # Empty until it may come in.
    target: str
    # It has its place, and waits to come in here.
    door: str = ""


class Line:
    """All unfinished migrations: those that wait, in order, and those that are under way, by the nodes that they use."""

    def __init__(self, leaves: Callable[[Name], str]) -> None:
        """`leaves` knows the node that a waiting one would leave; empty where it cannot leave any now. It is asked when one comes,
        and when somebody says that the answer may be another."""
        self._leaves = leaves
        self._waiting = Waiting()
        self._places: dict[Name, _Place] = {}
        self._out: Counter[str] = Counter()
        self._into: Counter[str] = Counter()
        self._phase: dict[Name, MigrationPhase] = {}
        self.phases: Counter[MigrationPhase] = Counter()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def under_way(self) -> int:
        return len(self._places)

    def place(self, name: Name) -> object:
        """Where it stands: as long as that stays the same, nobody else is concerned."""
        return self._places.get(name) or self._waiting.place(name)

    def at_the_door(self, limits: Limits) -> list[Name]:
        """Those that have begun and may come in now. There are few: they count for the cluster."""
        return [name for name, place in self._places.items() if place.door and self.may_come_in(place.door, limits)]

    def put(self, name: Name, migration: VirtualMachineInstanceMigration | None) -> None:
        """As it is now; None where there is no such migration any more."""
        self._leave(name)
        if migration is None or phase_of(migration) in FINISHED:
            return
        self._phase[name] = phase_of(migration)
        self.phases[phase_of(migration)] += 1
        if phase_of(migration) == "Pending":
            self._waiting.put(ticket_of(migration), self._leaves(name))
            return
        place = self._places[name] = _place_of(migration)
        self._out[place.source] += 1
        if place.target:
            self._into[place.target] += 1

    def look_again(self, name: Name) -> None:
        """What it would leave may be another now."""
        if (place := self._waiting.place(name)) is not None:
            self._waiting.put(place[0], self._leaves(name))

    def _leave(self, name: Name) -> None:
        if (phase := self._phase.pop(name, None)) is not None:
            self.phases[phase] -= 1
        self._waiting.remove(name)
        if (place := self._places.pop(name, None)) is not None:
            self._out[place.source] -= 1
            if place.target:
                self._into[place.target] -= 1

    def next_up(self, limits: Limits) -> Iterator[Name]:
        """Those that may begin now, all of them together."""
        room = limits.cluster - len(self._places)
        return (ticket.name for ticket in self._waiting.first(room, lambda node: limits.outbound - self._out[node]))

    def why_waiting(self, name: Name, source: str, limits: Limits) -> tuple[str, str]:
        """Reason and sentence; empty where it is its turn."""
        if name in self.next_up(limits):
            return "", ""
        if self._out[source] >= limits.outbound:
            return (
                reasons.WAITING_FOR_OUTBOUND_LIMIT,
                f"{self._out[source]} migrations leave node {source}, and no more may at once"
                f" (parallelOutboundMigrationsPerNode: {limits.outbound})",
            )
        return (
            reasons.WAITING_FOR_CLUSTER_LIMIT,
            f"{len(self._places)} migrations are under way in the cluster (parallelMigrationsPerCluster: {limits.cluster}),"
            " and others are before this one",
        )

    def may_come_in(self, target: str, limits: Limits) -> bool:
        return self._into[target] < limits.inbound

    def full(self, limits: Limits) -> tuple[str, ...]:
        """Nodes that nobody more may come to now."""
        return tuple(sorted(node for node, count in self._into.items() if count >= limits.inbound))

    def why_not_in(self, target: str, limits: Limits) -> tuple[str, str]:
        return (
            reasons.WAITING_FOR_INBOUND_LIMIT,
            f"{self._into[target]} migrations come to node {target}, and no more may at once"
            f" (parallelInboundMigrationsPerNode: {limits.inbound})",
        )


def _place_of(migration: VirtualMachineInstanceMigration) -> _Place:
    phase, target = phase_of(migration), target_of(migration)
    return _Place(source_of(migration), target if phase in COMING_IN else "", target if phase == "Scheduled" else "")
