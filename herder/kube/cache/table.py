"""The objects of a cache with their indexes, and those who want to know of changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import structlog

from herder.api.meta import Identified
from herder.kube.cache.indexes import Buckets, Index
from herder.kube.cache.stored import Change, Stored
from herder.kube.resources import Key

log = structlog.get_logger()
V = TypeVar("V", bound=Identified)
Handler = Callable[[Change[V]], None]


class Table(Generic[V]):
    """Changed in one place only, so that objects, indexes and handlers can never disagree."""

    def __init__(self) -> None:
        self.objects: dict[Key, Stored[V]] = {}
        self._indexes: dict[str, tuple[Index[Any], Buckets[V]]] = {}
        self._buckets: tuple[Buckets[V], ...] = ()
        self._handlers: tuple[Handler[V], ...] = ()

    def put(self, new: Stored[V]) -> None:
        """The same state twice is nothing; another uid is another object, so the one before it has gone."""
        key = new.key
        old = self.objects.get(key)
        if old is not None and old.uid != new.uid:
            self.remove(key)
            old = None
        elif old is not None and old.version == new.version:
            return
        self.objects[key] = new
        for buckets in self._buckets:
            buckets.change(key, old, new)
        if self._handlers:
            self._tell(Change(key, old, new))

    def remove(self, key: Key) -> None:
        old = self.objects.pop(key, None)
        if old is None:
            return
        for buckets in self._buckets:
            buckets.change(key, old, None)
        if self._handlers:
            self._tell(Change(key, old, None))

    def add_index(self, index: Index[Any]) -> None:
        known = self._indexes.get(index.name)
        if known is not None:
            if known[0] is not index:
                raise ValueError(f"there is another index named {index.name!r}: names must differ")
            return
        buckets: Buckets[V] = Buckets(index)
        for key, stored in self.objects.items():
            buckets.change(key, None, stored)
        self._indexes[index.name] = (index, buckets)
        self._buckets = (*self._buckets, buckets)

    def keys_by(self, index: Index[Any], value: str) -> tuple[Key, ...]:
        known = self._indexes.get(index.name)
        if known is None:
            raise ValueError(f"the cache has no index {index.name!r}: add it with add_index first")
        return known[1].keys(value)

    def subscribe(self, handler: Handler[V], *, replay: bool = True) -> Callable[[], None]:
        """What is there already comes first, as additions. Called from within a handler it does not get that change twice: the
        handlers of a change are those of its beginning."""
        for key, stored in list(self.objects.items()) if replay else ():
            _call(handler, Change(key, None, stored))
        self._handlers = (*self._handlers, handler)

        def leave() -> None:
            self._handlers = tuple(one for one in self._handlers if one is not handler)

        return leave

    def _tell(self, change: Change[V]) -> None:
        for handler in self._handlers:
            _call(handler, change)


def _call(handler: Handler[Any], change: Change[Any]) -> None:
    """A handler that fails is a bug of its own: the others, and the cache, go on."""
    try:
        handler(change)
    except Exception:
        log.exception("a handler of a cache failed", object=str(change.key))
