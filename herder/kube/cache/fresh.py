"""A list while it comes in: nothing of it counts until all of it is there."""

from __future__ import annotations

from typing import Generic, TypeVar

from herder.api.meta import Identified
from herder.kube.cache.reading import Reader
from herder.kube.cache.stored import Stored
from herder.kube.resources import Key

V = TypeVar("V", bound=Identified)


class Fresh(Generic[V]):
    def __init__(self, reader: Reader[V], known: dict[Key, Stored[V]]) -> None:
        self._reader = reader
        self._known = known
        self.objects: dict[Key, Stored[V]] = {}
        # What was deleted while the list was on its way, and when: it must not come back by an older event.
        self._gone: dict[Key, int] = {}

    def add(self, raw: bytes) -> None:
        """An object that we have in this very state stays the one that we have: its view stays, and memory is not needed twice."""
        stored = self._reader.stored(raw)
        if stored is None or stored.version <= self._newest(stored.key):
            return
        known = self._known.get(stored.key)
        same = known is not None and known.version == stored.version and known.uid == stored.uid
        self.objects[stored.key] = known if known is not None and same else stored

    def remove(self, raw: bytes) -> None:
        stored = self._reader.stored(raw)
        if stored is not None and stored.version > self._newest(stored.key):
            self.objects.pop(stored.key, None)
            self._gone[stored.key] = stored.version

    def start_again(self) -> None:
        self.objects.clear()
        self._gone.clear()

    def _newest(self, key: Key) -> int:
        listed = self.objects.get(key)
        return listed.version if listed is not None else self._gone.get(key, 0)
