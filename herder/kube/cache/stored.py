"""One object as the cache holds it: its bytes, what the indexes need of it, and its view once somebody asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from herder.api.meta import Identified
from herder.kube.errors import Unreadable
from herder.kube.resources import Key

V = TypeVar("V", bound=Identified)
View = TypeVar("View", bound=Identified, covariant=True)


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Who an object belongs to. Read leniently: a cache shows what is there."""

    uid: str = ""
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False


class Stored(msgspec.Struct, Generic[View], gc=False, eq=False):
    """Never changed: a new state is a new one. `gc=False`: a hundred thousand of these are nothing for the collector to look at,
    and nothing in them points back."""

    key: Key
    uid: str
    # The resourceVersion. Both engines count with it, so it can be compared.
    version: int
    raw: bytes
    labels: Mapping[str, str]
    owners: tuple[Owner, ...]
    node: str
    deleting: bool
    # How the view is made; one function for all objects of a cache.
    read: Callable[[Key, bytes], View]
    _view: View | Unreadable | None = None

    @property
    def view(self) -> View:
        """Decoded when first asked for. Raises Unreadable, again and again, where the object is not what the view says."""
        view = self._view
        if view is None:
            view = self._view = self._look()
        if isinstance(view, Unreadable):
            raise Unreadable(str(view))
        return view

    def _look(self) -> View | Unreadable:
        try:
            return self.read(self.key, self.raw)
        except Unreadable as problem:
            return problem.with_traceback(None)

    @property
    def controller(self) -> Owner | None:
        """The one owner that manages this object."""
        return next((owner for owner in self.owners if owner.controller), None)


def view_of(stored: Stored[V] | None) -> V | None:
    """None for what cannot be read, too: the cache counts and logs it."""
    try:
        return stored.view if stored is not None else None
    except Unreadable:
        return None


class Change(msgspec.Struct, Generic[View], frozen=True, eq=False):
    """What happened to one key: it came (no `old`), changed, or went (no `new`). `old` is always what was `new` the last time."""

    key: Key
    old: Stored[View] | None
    new: Stored[View] | None
