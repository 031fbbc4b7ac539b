"""Which reservations there are, which pods took them, and what each still holds on its node.

The ledger counts; whoever keeps the snapshot asks it after each change what a reservation holds now (`held`), and puts that into
the snapshot in place of what it held before. Pods and reservations may become known in any order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

import msgspec

from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.rules.placement.needs import Needs
from herder.rules.reservations.allocation import Allocation, allocation_of
from herder.rules.reservations.expiry import is_expired
from herder.rules.reservations.owners import OwnerKey, is_label_key, matches, owner_keys, pod_keys
from herder.rules.reservations.room import allocates_once, held_needs, placing_needs, total

PodKey = tuple[str, str]
AVAILABLE = "Available"


class Held(msgspec.Struct, frozen=True):
    """Room on a node that nobody else may have."""

    needs: Needs
    node: str


# When it was made, and its name.
Age = tuple[float, str]


class _Entry:
    __slots__ = ("age", "indexed", "keys", "needs", "reservation")

    def __init__(self, reservation: ReservationView) -> None:
        self.reservation = reservation
        self.needs = placing_needs(reservation)
        self.keys = owner_keys(reservation)
        created = reservation.metadata.creation_timestamp
        self.age: Age = (created.timestamp() if created is not None else 0.0, reservation.name)
        # Whether pods find it.
        self.indexed = False


class _Taken(msgspec.Struct, frozen=True):
    allocation: Allocation
    node: str
    requests: Mapping[str, int]
    pod: Pod


class Ledger:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        # Placed by us, and not told yet.
        self._assumed: dict[str, str] = {}
        self._pods: dict[PodKey, _Taken] = {}
        self._by_name: dict[str, dict[PodKey, _Taken]] = {}
        # Of those that pods may take, under the keys of their owners, the oldest first: all, and again those whose key is a label.
        self._open: dict[OwnerKey, list[Age]] = {}
        self._open_by_label: dict[OwnerKey, list[Age]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    # Reservations.

    def put(self, reservation: ReservationView) -> None:
        known = self._entries.get(reservation.name)
        if known is not None and known.reservation.uid == reservation.uid:
            # Its template and owners are immutable.
            known.reservation = reservation
        else:
            self.remove(reservation.name)
            self._entries[reservation.name] = _Entry(reservation)
        if reservation.status.node_name:
            self._assumed.pop(reservation.name, None)
        self._index(reservation.name)

    def remove(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self._assumed.pop(name, None)
        if entry is not None:
            self._unindex(entry)

    def assume(self, name: str, node: str) -> None:
        self._assumed[name] = node

    def undo(self, name: str) -> bool:
        return self._assumed.pop(name, None) is not None

    def is_assumed(self, name: str) -> bool:
        return name in self._assumed

    def get(self, name: str) -> ReservationView | None:
        entry = self._entries.get(name)
        return entry.reservation if entry is not None else None

    def all(self) -> Iterator[ReservationView]:
        return (entry.reservation for entry in self._entries.values())

    def needs(self, name: str) -> Needs | None:
        entry = self._entries.get(name)
        return entry.needs if entry is not None else None

    # Pods.

    def put_pod(self, pod: Pod, needs: Needs, node: str, allocation: Allocation | None = None) -> set[str]:
        """The names of the reservations for which that makes a difference. `allocation`: where the pod does not say it yet."""
        said = allocation or allocation_of(pod.annotations)
        changed = self.remove_pod((pod.namespace, pod.name))
        if said is None:
            return changed
        taken = _Taken(said, node, needs.requests, pod)
        self._pods[pod.namespace, pod.name] = taken
        self._by_name.setdefault(said.name, {})[pod.namespace, pod.name] = taken
        self._index(said.name)
        return changed | {said.name}

    def remove_pod(self, key: PodKey) -> set[str]:
        taken = self._pods.pop(key, None)
        if taken is None:
            return set()
        name = taken.allocation.name
        del self._by_name[name][key]
        if not self._by_name[name]:
            del self._by_name[name]
        self._index(name)
        return {name}

    def pods_of(self, name: str) -> Iterator[Pod]:
        """Those that took it, and that it is for."""
        return (taken.pod for taken in self._takers(self._entries.get(name)))

    # What follows.

    def node_of(self, name: str) -> str:
        entry = self._entries.get(name)
        if entry is None:
            return ""
        return entry.reservation.status.node_name or self._assumed.get(name, "")

    def held(self, name: str) -> Held | None:
        entry = self._entries.get(name)
        node = self.node_of(name)
        if entry is None or not node or not self._holds(name, entry):
            return None
        takers = list(self._takers(entry))
        if takers and allocates_once(entry.reservation):
            return None
        needs = held_needs(entry.needs, total(taken.requests for taken in takers if taken.node == node))
        return Held(needs, node) if needs is not None else None

    def open_for(self, pod: Pod, now: float) -> Iterator[ReservationView]:
        """Those that it may take, the oldest first. To be read before anything changes; there may be thousands, of which the first
        will do."""
        if not self._open:
            return
        found = [ages for key in pod_keys(pod, self._open_by_label) if (ages := self._open.get(key)) is not None]
        if not found:
            return
        last: Age | None = None
        for age in heapq.merge(*found):
            if age == last:
                # Two of its entries fit.
                continue
            last = age
            reservation = self._entries[age[1]].reservation
            if not is_expired(reservation, now) and matches(reservation, pod):
                yield reservation

    def keys_of(self, name: str) -> frozenset[OwnerKey]:
        """Under which pods that wait for it are found; none where it is not to be had."""
        entry = self._entries.get(name)
        return entry.keys if entry is not None and self._is_open(name, entry) else frozenset()

    def _holds(self, name: str, entry: _Entry) -> bool:
        reservation = entry.reservation
        placed = reservation.status.phase == AVAILABLE or name in self._assumed
        return placed and not reservation.being_deleted

    def _is_open(self, name: str, entry: _Entry) -> bool:
        """Told as available, so that nobody is promised what could not be written; and with something left to take."""
        reservation = entry.reservation
        told = reservation.status.phase == AVAILABLE and bool(reservation.status.node_name)
        return told and not reservation.spec.unschedulable and self.held(name) is not None

    def _takers(self, entry: _Entry | None) -> Iterator[_Taken]:
        if entry is None:
            return
        reservation = entry.reservation
        for taken in self._by_name.get(reservation.name, {}).values():
            if taken.allocation.uid == reservation.uid and matches(reservation, taken.pod):
                yield taken

    def _index(self, name: str) -> None:
        entry = self._entries.get(name)
        if entry is None:
            return
        if not self._is_open(name, entry):
            self._unindex(entry)
        elif not entry.indexed:
            entry.indexed = True
            for key in entry.keys:
                insort(self._open.setdefault(key, []), entry.age)
                if is_label_key(key):
                    self._open_by_label[key] = self._open[key]

    def _unindex(self, entry: _Entry) -> None:
        if not entry.indexed:
            return
        entry.indexed = False
        for key in entry.keys:
            ages = self._open[key]
            del ages[bisect_left(ages, entry.age)]
            if not ages:
                del self._open[key]
                self._open_by_label.pop(key, None)
