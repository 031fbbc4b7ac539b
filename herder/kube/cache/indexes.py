"""Other ways to find objects than by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from herder.api.meta import Identified
from herder.kube.cache.stored import Stored
from herder.kube.errors import Unreadable
from herder.kube.resources import Key

V = TypeVar("V", bound=Identified, contravariant=True)


class Index(msgspec.Struct, Generic[V], frozen=True, eq=False):
    """The values under which an object is found. It may look at the view, but that decodes every object: what `Stored` knows
    already is cheaper. An object that cannot be read is found under no value of the view."""

    name: str
    values: Callable[[Stored[V]], Iterable[str]]
    # What the values are made of, where that is cheap to compare: as long as it stays the same, so do they.
    made_of: Callable[[Stored[V]], object] | None = None


def label(key: str, value: str) -> str:
    """How BY_LABEL wants to be asked."""
    return f"{key}={value}"


def owned(namespace: str, uid: str) -> str:
    """How BY_OWNER wants to be asked: for what is in the owner's namespace."""
    return f"{namespace}/{uid}"


BY_NAMESPACE: Index[Any] = Index("namespace", lambda stored: (stored.key.namespace,), attrgetter("key"))
# By uid: another object of the owner's name is not the owner. And only in the owner's namespace: whoever may create objects in
# another one could write any uid into them, and be taken for its own.
BY_OWNER: Index[Any] = Index(
    "owner", lambda stored: [owned(stored.key.namespace, owner.uid) for owner in stored.owners], attrgetter("owners")
)
BY_NODE: Index[Any] = Index("node", lambda stored: (stored.node,) if stored.node else (), attrgetter("node"))
BY_LABEL: Index[Any] = Index(
    "label", lambda stored: [f"{key}={value}" for key, value in stored.labels.items()], attrgetter("labels")
)


class Buckets(Generic[V]):
    """An index with what it holds. Dicts in place of sets: their order does not depend on hashes."""

    def __init__(self, index: Index[V]) -> None:
        self._index = index
        self._made_of = index.made_of
        self._keys: dict[str, dict[Key, None]] = {}

    def change(self, key: Key, old: Stored[V] | None, new: Stored[V] | None) -> None:
        made_of = self._made_of
        if old is not None and new is not None and made_of is not None and made_of(old) == made_of(new):
            return
        before = () if old is None else self._values(old)
        after = () if new is None else self._values(new)
        if before == after:
            return
        for value in before:
            self._take_away(value, key)
        for value in after:
            bucket = self._keys.get(value)
            if bucket is None:
                bucket = self._keys[value] = {}
            bucket[key] = None

    def keys(self, value: str) -> tuple[Key, ...]:
        """Sorted: the answer depends on what is there, not on the order in which it came."""
        bucket = self._keys.get(value)
        return tuple(sorted(bucket)) if bucket else ()

    def _take_away(self, value: str, key: Key) -> None:
        bucket = self._keys.get(value, {})
        bucket.pop(key, None)
        if not bucket:
            self._keys.pop(value, None)

    def _values(self, stored: Stored[V]) -> Iterable[str]:
        try:
            return self._index.values(stored)
        except Unreadable:
            return ()
