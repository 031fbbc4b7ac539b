"""From changes in a cache to names in a queue: which objects a controller has to look at when this one changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from herder.kube.cache import Change, Stored
from herder.kube.errors import Unreadable
from herder.kube.queue import Queue
from herder.kube.resources import Anything, Key


class Subscribed(Protocol):
    """A cache, or whatever else tells of changes."""

    def subscribe(self, handler: Callable[[Change[Any]], None], /) -> object: ...


ToKeys = Callable[[Stored[Any]], Iterable[Key]]


def itself(stored: Stored[Any]) -> tuple[Key, ...]:
    return (stored.key,)


def controlled_by(resource: Anything) -> ToKeys:
    """The owner that manages the object, if it is of this kind, whatever version its reference says."""

    def owner(stored: Stored[Any]) -> tuple[Key, ...]:
        found = stored.controller
        if found is None or found.kind != resource.kind or _group(found.api_version) != resource.group:
            return ()
        return (Key(stored.key.namespace if resource.namespaced else "", found.name),)

    return owner


def enqueue(cache: Subscribed, queue: Queue, to_keys: ToKeys = itself) -> None:
    """Asked for what the object was and for what it is: whoever lost it has to look as well."""

    def changed(change: Change[Any]) -> None:
        states = [state for state in (change.old, change.new) if state is not None]
        # A dict and not a set: the order must not depend on hashes.
        for key in dict.fromkeys(key for state in states for key in _keys(to_keys, state)):
            queue.add(key)

    cache.subscribe(changed)


def _keys(to_keys: ToKeys, state: Stored[Any]) -> tuple[Key, ...]:
    """One that cannot be read leads nowhere; the cache has counted it and said so."""
    try:
        return tuple(to_keys(state))
    except Unreadable:
        return ()


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
