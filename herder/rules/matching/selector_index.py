"""Which selectors pick which objects, found from either side without looking at all of the others.

There may be a selector for each object, and thousands of both in one namespace: a selector that demands one value of a label is
found by that label, and so are its objects. Everything is of one namespace: whoever writes labels in another one is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from herder.api.selectors import Selector


class _Sortable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


S = TypeVar("S", bound=_Sortable)
T = TypeVar("T", bound=_Sortable)

# A label's key and value within a namespace; the key None holds the selectors that no single label finds, and all objects.
Place = tuple[str, str | None, str]


class _Labelled(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    labels: Mapping[str, str]


class _Selecting(msgspec.Struct, frozen=True, gc=False):
    selector: Selector
    place: Place


class SelectorIndex(Generic[S, T]):
    """`S`: how selectors are called, `T`: how objects are. Answers are sorted: they do not depend on what came first."""

    def __init__(self) -> None:
        self._selecting: dict[S, _Selecting] = {}
        self._selectors: dict[Place, set[S]] = {}
        self._labelled: dict[T, _Labelled] = {}
        self._objects: dict[Place, set[T]] = {}

    # --- asking ------------------------------------------------------------------------------------------------------------------

    def selectors_of(self, namespace: str, labels: Mapping[str, str]) -> list[S]:
        """The selectors that pick an object with these labels."""
        # A selector is in one place: none comes twice.
        found = self._candidates(namespace, labels)
        return sorted(key for keys in found for key in keys if self._selecting[key].selector.matches(labels)) if found else []

    def crowd(self, namespace: str, labels: Mapping[str, str]) -> int:
        """How many selectors `selectors_of` would have to look at."""
        return sum(map(len, self._candidates(namespace, labels)))

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> list[set[S]]:
        get = self._selectors.get
        places = (get(place) for place in (_anywhere(namespace), *_places(namespace, labels)))
        return [selectors for selectors in places if selectors]

    def objects_of(self, key: S) -> list[T]:
        """The objects that the selector picks."""
        known = self._selecting.get(key)
        if known is None:
            return []
        matches, labelled = known.selector.matches, self._labelled
        return sorted(name for name in self._objects.get(known.place, ()) if matches(labelled[name].labels))

    # --- learning ----------------------------------------------------------------------------------------------------------------

    def set_selector(self, key: S, namespace: str, selector: Selector) -> None:
        known = self._selecting.get(key)
        if known is not None and known.selector == selector and known.place[0] == namespace:
            return
        self.remove_selector(key)
        if not selector.selectable:
            return  # It picks nothing: nobody need look at it.
        exact = selector.first_exact()
        place: Place = (namespace, *exact) if exact else _anywhere(namespace)
        self._selecting[key] = _Selecting(selector, place)
        self._selectors.setdefault(place, set()).add(key)

    def remove_selector(self, key: S) -> None:
        known = self._selecting.pop(key, None)
        if known is not None:
            _take_away(self._selectors, (known.place,), key)

    def set_labels(self, key: T, namespace: str, labels: Mapping[str, str]) -> None:
        known = self._labelled.get(key)
        if known is not None and known.labels == labels and known.namespace == namespace:
            return
        self.remove_labels(key)
        self._labelled[key] = _Labelled(namespace, labels)
        for place in (_anywhere(namespace), *_places(namespace, labels)):
            self._objects.setdefault(place, set()).add(key)

    def remove_labels(self, key: T) -> None:
        known = self._labelled.pop(key, None)
        if known is not None:
            _take_away(self._objects, (_anywhere(known.namespace), *_places(known.namespace, known.labels)), key)


def _anywhere(namespace: str) -> Place:
    return namespace, None, ""


def _places(namespace: str, labels: Mapping[str, str]) -> list[Place]:
    return [(namespace, key, value) for key, value in labels.items()]


def _take_away(places: dict[Place, set[Any]], among: Iterable[Place], key: Any) -> None:
    for place in among:
        keys = places.get(place)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del places[place]
