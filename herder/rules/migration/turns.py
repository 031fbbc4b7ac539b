"""Whose turn it is: the limits of the cluster and of each node are never exceeded, the most urgent go first, then the oldest.

Counted from the objects alone: after a restart, or under another leader, the count is the same.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from herder.api import reasons
from herder.api.kinds.migration import MigrationPhase, MigrationPriority, VirtualMachineInstanceMigration
from herder.rules.migration.phases import COMING_IN, FINISHED, phase_of, source_of, target_of

Name = tuple[str, str]  # namespace and name
_RANK: dict[MigrationPriority | None, int] = {"system-critical": 0, "user-triggered": 1, "system-maintenance": 2, None: 3}


class Limits(msgspec.Struct, frozen=True):
    cluster: int = 5
    outbound: int = 2
    inbound: int = 2


class Ticket(msgspec.Struct, frozen=True, order=True):
    """In the order in which they are called."""

    rank: int
    made_at: float
    name: Name


class _Place(msgspec.Struct, frozen=True):
    """Where a migration under way counts."""

    source: str
    # Empty until it may come in.
    target: str


def ticket_of(migration: VirtualMachineInstanceMigration) -> Ticket:
    made = migration.metadata.creation_timestamp
    return Ticket(_RANK.get(migration.spec.priority, 3), made.timestamp() if made else 0.0, (migration.namespace, migration.name))


class Line:
    """All unfinished migrations: those that wait, in order, and those that are under way, by the nodes that they use."""

    def __init__(self, leaves: Callable[[Name], str]) -> None:
        """`leaves` knows the node that a waiting one would leave; empty where it cannot leave any now."""
        self._leaves = leaves
        self._waiting: list[Ticket] = []
        self._tickets: dict[Name, Ticket] = {}
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
        return self._places.get(name) or self._tickets.get(name)

    def at_the_door(self) -> list[Name]:
        """Those that have begun and may not come in yet. There are few: they count for the cluster."""
        return [name for name, place in self._places.items() if not place.target]

    def put(self, name: Name, migration: VirtualMachineInstanceMigration | None) -> None:
        """As it is now; None where there is no such migration any more."""
        self._leave(name)
        if migration is None or phase_of(migration) in FINISHED:
            return
        self._phase[name] = phase_of(migration)
        self.phases[phase_of(migration)] += 1
        if phase_of(migration) == "Pending":
            ticket = self._tickets[name] = ticket_of(migration)
            insort(self._waiting, ticket)
            return
        place = self._places[name] = _Place(source_of(migration), target_of(migration) if phase_of(migration) in COMING_IN else "")
        self._out[place.source] += 1
        if place.target:
            self._into[place.target] += 1

    def _leave(self, name: Name) -> None:
        if (phase := self._phase.pop(name, None)) is not None:
            self.phases[phase] -= 1
        if (ticket := self._tickets.pop(name, None)) is not None:
            del self._waiting[bisect_left(self._waiting, ticket)]
        if (place := self._places.pop(name, None)) is not None:
            self._out[place.source] -= 1
            if place.target:
                self._into[place.target] -= 1

    def next_up(self, limits: Limits) -> Iterator[Name]:
        """Those that may begin now, all of them together."""
        room = limits.cluster - len(self._places)
        taken: Counter[str] = Counter()
        for ticket in self._waiting:
            if room <= 0:
                return
            source = self._leaves(ticket.name)
            if source and self._out[source] + taken[source] < limits.outbound:
                taken[source] += 1
                room -= 1
                yield ticket.name

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
