"""Processors of one kind are one class. Needs and offers are sets of bits: one class is compared with all others at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from herder.rules.migratability.profile import Profile

Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
WORD = 64
FEW = 16


class Classes:
    """A class has a place in all arrays for as long as it is held. Places of classes that are gone are used again."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._vendors: dict[str, int] = {"": 0}
        self._places: dict[Profile, int] = {}
        self._held: dict[int, Profile] = {}
        self._free: list[int] = []
        self._needs: Words = np.zeros((FEW, 1), np.uint64)
        self._offers: Words = np.zeros((FEW, 1), np.uint64)
        self._vendor: NDArray[np.int64] = np.zeros(FEW, np.int64)
        # Whether a host-model guest can start there at all. Nobody takes a guest of a class that is not there.
        self.starts: Mask = np.zeros(FEW, np.bool_)

    @property
    def capacity(self) -> int:
        return len(self.starts)

    def __len__(self) -> int:
        return len(self._places)

    def at(self, place: int) -> Profile:
        return self._held[place]

    def find(self, profile: Profile) -> int | None:
        return self._places.get(profile)

    def add(self, profile: Profile) -> int:
        place = self._free.pop() if self._free else len(self._places)
        if place >= self.capacity:
            self._grow(2 * self.capacity)
        # In the order of their names: nothing may follow from the order of a set.
        for name in sorted({name for names in (profile.needs, profile.offers) for name in names if name not in self._bits}):
            self._bits[name] = len(self._bits)
        self._widen(-(-len(self._bits) // WORD))
        self._places[profile] = place
        self._held[place] = profile
        self._needs[place] = self._packed(profile.needs)
        self._offers[place] = self._packed(profile.offers)
        self._vendor[place] = self._vendors.setdefault(profile.vendor, len(self._vendors))
        self.starts[place] = bool(profile.model)
        return place

    def drop(self, place: int) -> None:
        del self._places[self._held.pop(place)]
        self.starts[place] = False
        self._free.append(place)

    def taken_by(self, place: int) -> Mask:
        """Of each class, whether this one takes its guests."""
        lacking = (self._needs & ~self._offers[place]).any(axis=1)
        return self.starts & ~lacking & self._same_vendor(place)

    def takers_of(self, place: int) -> Mask:
        """Of each class, whether it takes the guests of this one. What is not there any more counts nothing where it is asked."""
        if not self.starts[place]:
            return np.zeros(self.capacity, np.bool_)
        lacking = (self._needs[place] & ~self._offers).any(axis=1)
        return ~lacking & self._same_vendor(place)

    @property
    def names(self) -> int:
        """Of models and features."""
        return len(self._bits)

    @property
    def names_unused(self) -> bool:
        """Whether more names are held than classes use: then it is time to begin anew."""
        held = list(self._places.values())
        used = np.bitwise_or.reduce(self._needs[held] | self._offers[held], axis=0) if held else np.zeros(1, np.uint64)
        return len(self._bits) > 2 * int(np.unpackbits(used.view(np.uint8)).sum()) + 4 * WORD

    def _same_vendor(self, place: int) -> Mask:
        """Where both say one."""
        own = self._vendor[place]
        return (self._vendor == own) | (self._vendor == 0) | (own == 0)

    def _packed(self, names: Iterable[str]) -> Words:
        flags = np.zeros(self._needs.shape[1] * WORD, np.uint8)
        flags[[self._bits[name] for name in names]] = 1
        return np.packbits(flags, bitorder="little").view(np.uint64)

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        self._needs = np.pad(self._needs, ((0, more), (0, 0)))
        self._offers = np.pad(self._offers, ((0, more), (0, 0)))
        self._vendor = np.pad(self._vendor, (0, more))
        self.starts = np.pad(self.starts, (0, more))

    def _widen(self, words: int) -> None:
        more = words - self._needs.shape[1]
        if more > 0:
            self._needs = np.pad(self._needs, ((0, 0), (0, more)))
            self._offers = np.pad(self._offers, ((0, 0), (0, more)))
