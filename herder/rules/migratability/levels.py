"""The host-model migratability level of every node (seed 002): floor(100 × d / n).

n is the number of schedulable nodes, d that of the others which would take a host-model guest first started here. Both are kept as
integers: however many nodes come and go, nothing drifts. One event changes the count of one class; a recount gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from herder.rules.migratability.classes import Classes
from herder.rules.migratability.profile import Profile

Counts = NDArray[np.int64]


class Count(msgspec.Struct, frozen=True):
    """`takers` of `nodes`: the others that would take a guest, and how many there are in all."""

    takers: int
    nodes: int

    @property
    def level(self) -> int:
        return 100 * self.takers // self.nodes


class Levels:
    def __init__(self, profiles: Mapping[str, Profile] | None = None) -> None:
        """All at once is one recount, not many events."""
        self._classes = Classes()
        # The place of each node's class.
        self._nodes: dict[str, int] = {}
        # Of each class: how many nodes it has, how many nodes take its guests, and whether its own nodes are among these.
        self._members: Counts = np.zeros(self._classes.capacity, np.int64)
        self._takers: Counts = np.zeros(self._classes.capacity, np.int64)
        self._own: Counts = np.zeros(self._classes.capacity, np.int64)
        for name, profile in (profiles or {}).items():
            self._nodes[name] = place = self._place(profile)
            self._members[place] += 1
        if profiles:
            self._takers = self.recounted()

    def __len__(self) -> int:
        """The n of all levels."""
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    @property
    def classes(self) -> int:
        return len(self._classes)

    def put(self, name: str, profile: Profile | None) -> bool:
        """A node as it is now; None where it is gone or takes no guests. Whether that changes anything."""
        place = self._nodes.get(name)
        before = None if place is None else self._classes.at(place)
        if before is profile or before == profile:
            return False
        if place is not None:
            del self._nodes[name]
            self._count(place, -1)
        if profile is not None:
            self._nodes[name] = place = self._place(profile)
            self._count(place, 1)
        return True

    def count(self, name: str) -> Count | None:
        """None for a node that does not count."""
        place = self._nodes.get(name)
        return None if place is None else Count(int(self._takers[place] - self._own[place]), len(self._nodes))

    def level(self, name: str) -> int | None:
        found = self.count(name)
        return None if found is None else found.level

    def all(self) -> dict[str, int]:
        """The level of every node that counts."""
        if not self._nodes:
            return {}
        levels: list[int] = (100 * (self._takers - self._own) // len(self._nodes)).tolist()
        return {name: levels[place] for name, place in self._nodes.items()}

    @property
    def names(self) -> int:
        """How many models and features are told apart."""
        return self._classes.names

    def best(self) -> int | None:
        return max(self.all().values(), default=None)

    def recounted(self) -> Counts:
        """From the members of the classes alone, without a look at what was counted before."""
        takers = np.zeros(self._classes.capacity, np.int64)
        for place in np.flatnonzero(self._members).tolist():
            takers += self._classes.taken_by(place) * self._members[place]
        return takers

    def _place(self, profile: Profile) -> int:
        place = self._classes.find(profile)
        return self._new_class(profile) if place is None else place

    def _new_class(self, profile: Profile) -> int:
        place = self._classes.add(profile)
        more = self._classes.capacity - len(self._members)
        if more:
            self._members, self._takers, self._own = (np.pad(one, (0, more)) for one in (self._members, self._takers, self._own))
        takers = self._classes.takers_of(place)
        self._takers[place] = self._members @ takers
        self._own[place] = takers[place]
        return place

    def _count(self, place: int, change: int) -> None:
        self._members[place] += change
        self._takers += self._classes.taken_by(place) * change
        if self._members[place] == 0:
            self._classes.drop(place)
            if self._classes.names_unused:
                self._begin_anew()

    def _begin_anew(self) -> None:
        """Names that no node has any more would be compared for ever."""
        fresh = Levels({name: self._classes.at(place) for name, place in self._nodes.items()})
        self._classes, self._nodes = fresh._classes, fresh._nodes
        self._members, self._takers, self._own = fresh._members, fresh._takers, fresh._own
