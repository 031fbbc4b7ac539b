"""Those whose turn has not come, by the node that they would leave: however many wait, who is next is found in a few steps."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice

import msgspec

from herder.api.kinds.migration import MigrationPriority, VirtualMachineInstanceMigration

Name = tuple[str, str]  # namespace and name
_RANK: dict[MigrationPriority | None, int] = {"system-critical": 0, "user-triggered": 1, "system-maintenance": 2, None: 3}


class Ticket(msgspec.Struct, frozen=True, order=True):
    """In the order in which they are called."""

    rank: int
    made_at: float
    name: Name


def ticket_of(migration: VirtualMachineInstanceMigration) -> Ticket:
    made = migration.metadata.creation_timestamp
    return Ticket(_RANK.get(migration.spec.priority, 3), made.timestamp() if made else 0.0, (migration.namespace, migration.name))


class Waiting:
    def __init__(self) -> None:
        self._places: dict[Name, tuple[Ticket, str]] = {}
        self._by_node: dict[str, list[Ticket]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, name: Name) -> tuple[Ticket, str] | None:
        return self._places.get(name)

    def put(self, ticket: Ticket, node: str) -> None:
        """`node` is empty where it cannot leave any now."""
        self.remove(ticket.name)
        self._places[ticket.name] = (ticket, node)
        insort(self._by_node.setdefault(node, []), ticket)

    def remove(self, name: Name) -> None:
        if (place := self._places.pop(name, None)) is None:
            return
        ticket, node = place
        tickets = self._by_node[node]
        del tickets[bisect_left(tickets, ticket)]
        if not tickets:
            del self._by_node[node]

    def first(self, count: int, may_leave: Callable[[str], int]) -> Iterator[Ticket]:
        """So many, in order; of each node no more than may leave it."""
        if count <= 0:
            return iter(())
        lines = [islice(tickets, max(0, may_leave(node))) for node, tickets in self._by_node.items() if node]
        return islice(merge(*lines), count)
