"""All nodes as columns: what they offer and have left, their labels, taints and cordons."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import msgspec
import numpy as np

from herder.api.core import Node
from herder.api.core.nodes import Taint
from herder.rules.matching.resources import amounts
from herder.rules.placement.columns import Codes, Labels, Mask, Whole, longer

STEP = 512
# Answers about labels and taints that are kept until a node's labels or taints change.
MOST_REMEMBERED = 512
MOST_TAINT_SETS = 64
T = TypeVar("T")


class Offer(msgspec.Struct, frozen=True):
    """What of a node matters to where pods go. Heartbeats and conditions do not."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...]
    unschedulable: bool
    allocatable: Mapping[str, int]
    # Being deleted: it stays until its last guest has ended, and nothing comes there any more.
    leaving: bool = False

    @classmethod
    def of(cls, node: Node) -> Offer:
        taints = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        room = amounts(node.status.allocatable)
        return cls(node.name, node.labels, taints, node.spec.unschedulable, room, node.being_deleted)

    def taint_views(self) -> list[Taint]:
        return [Taint(key=key, value=value, effect=effect) for key, value, effect in self.taints]


class Nodes:
    """A node has a row as long as it is there. Rows of nodes that are gone are given away again."""

    def __init__(self) -> None:
        self.capacity = STEP
        self.rows: dict[str, int] = {}
        self.offers: dict[int, Offer] = {}
        self.alive: Mask = np.zeros(STEP, dtype=np.bool_)
        self.cordoned: Mask = np.zeros(STEP, dtype=np.bool_)
        self.leaving: Mask = np.zeros(STEP, dtype=np.bool_)
        self.taints: Codes = np.zeros(STEP, dtype=np.int32)
        # Each set of taints, by its number: there are few.
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.labels = Labels(STEP)
        self.allocatable: dict[str, Whole] = {}
        self.free: dict[str, Whole] = {}
        self._taint_numbers: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}
        self._known: dict[str, int] = {}
        self._unused: list[int] = []
        self._remembered: dict[Hashable, object] = {}
        self._order: Codes | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def put(self, offer: Offer) -> int:
        row = self.rows.get(offer.name)
        if row is None:
            row = self._new_row(offer.name)
        old = self.offers.get(row)
        self.offers[row] = offer
        self._put_room(row, offer.allocatable, {} if old is None else old.allocatable)
        self.leaving[row] = offer.leaving
        if old is None or (old.labels, old.taints, old.unschedulable) != (offer.labels, offer.taints, offer.unschedulable):
            self._remembered.clear()
            self.labels.put(row, offer.labels)
            self.taints[row] = self._taint_number(offer)
            self.cordoned[row] = offer.unschedulable
        return row

    def remove(self, name: str) -> None:
        row = self.rows.pop(name)
        offer = self.offers.pop(row)
        self._put_room(row, {}, offer.allocatable)
        self.labels.put(row, None)
        self.alive[row] = self.cordoned[row] = self.leaving[row] = False
        self.taints[row] = 0
        self._unused.append(row)
        self._remembered.clear()
        self._order = None

    def take(self, row: int, requests: Mapping[str, int], times: int) -> None:
        for name, amount in requests.items():
            if amount:
                self._free(name)[row] -= amount * times
                self._count(name, times)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """An answer that depends on labels, taints and cordons only."""
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = make()
        return known  # type: ignore[return-value]

    def order(self) -> Codes:
        """The place of each row in the order of names: of nodes that are alike, everybody takes the same one."""
        if self._order is None:
            self._order = np.zeros(self.capacity, dtype=np.int32)
            for place, name in enumerate(sorted(self.rows)):
                self._order[self.rows[name]] = place
        return self._order

    def _new_row(self, name: str) -> int:
        if not self._unused:
            if len(self.rows) == self.capacity:
                self._grow(self.capacity + max(STEP, self.capacity // 8))
            self._unused.append(len(self.rows))
        row = self.rows[name] = self._unused.pop()
        self.alive[row] = True
        self._order = None
        return row

    def _put_room(self, row: int, offered: Mapping[str, int], before: Mapping[str, int]) -> None:
        for name in {**before, **offered}:
            difference = offered.get(name, 0) - before.get(name, 0)
            if difference:
                self._free(name)[row] += difference
                self.allocatable[name][row] = offered.get(name, 0)
                self._count(name, bool(offered.get(name, 0)) - bool(before.get(name, 0)))

    def _count(self, name: str, by: int) -> None:
        """Nodes that offer it and pods that hold it. Of what nobody knows any more no column is kept: names are made up by whoever
        makes pods."""
        left = self._known[name] = self._known.get(name, 0) + by
        if not left:
            del self._known[name], self.free[name], self.allocatable[name]

    def _free(self, name: str) -> Whole:
        column = self.free.get(name)
        if column is None:
            column = self.free[name] = np.zeros(self.capacity, dtype=np.int64)
            self.allocatable[name] = np.zeros(self.capacity, dtype=np.int64)
        return column

    def _taint_number(self, offer: Offer) -> int:
        number = self._taint_numbers.get(offer.taints)
        if number is None and len(self.taint_sets) > 2 * len(self.rows) + MOST_TAINT_SETS:
            self._number_taints_anew()
            number = self._taint_numbers.get(offer.taints)
        if number is None:
            number = self._taint_numbers[offer.taints] = len(self.taint_sets)
            self.taint_sets.append(tuple(offer.taint_views()))
        return number

    def _number_taints_anew(self) -> None:
        """Most are sets that no node has any more."""
        self.taint_sets, self._taint_numbers = [()], {(): 0}
        self._remembered.clear()
        for row, offer in self.offers.items():
            self.taints[row] = self._taint_number(offer)

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        self.alive = longer(self.alive, capacity)
        self.cordoned = longer(self.cordoned, capacity)
        self.leaving = longer(self.leaving, capacity)
        self.taints = longer(self.taints, capacity)
        self.labels.grow(capacity)
        for columns in (self.allocatable, self.free):
            for name, column in columns.items():
                columns[name] = longer(column, capacity)
        self._remembered.clear()
