"""Which disruption budgets are about which pods, found from either side without looking at all of the others.

There may be a budget per pod, and thousands of both in one namespace: a budget that demands one value of a label is found by it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from herder.api.selectors import NOTHING, Selector, selector_from_object
from herder.server.store import DELETED, Change, Record, Store

PODS = "pods"
BUDGETS = "poddisruptionbudgets.policy"

# A label's key and value within a namespace; the key None holds those that no single label finds.
Place = tuple[str, str | None, str]


class _Known(msgspec.Struct, frozen=True, gc=False):
    selector: Selector
    place: Place


class BudgetIndex:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}
        self._budgets: dict[Place, set[str]] = {}
        self._pods: dict[Place, set[str]] = {}
        for record in store.scan(BUDGETS):
            self._learn(record)
        for record in store.scan(PODS):
            self._place_pod(record)
        store.listen(BUDGETS, self._on_budget)
        store.listen(PODS, self._on_pod)

    # --- asking ------------------------------------------------------------------------------------------------------------------

    def of_pod(self, pod: Record) -> list[str]:
        """The keys of the budgets whose selectors this pod matches."""
        places: list[Place] = [(pod.namespace, None, ""), *_places(pod)]
        candidates = {key for place in places for key in self._budgets.get(place, ())}
        return sorted(key for key in candidates if self._known[key].selector.matches(pod.labels))

    def pods_of(self, key: str) -> Iterator[Record]:
        known = self._known.get(key)
        if known is None:
            return
        if known.place[1] is None:
            records: Iterator[Record] = self._store.scan(PODS, f"{known.place[0]}/")
        else:
            found = (self._store.get(PODS, pod) for pod in sorted(self._pods.get(known.place, ())))
            records = (record for record in found if record is not None)
        yield from (record for record in records if known.selector.matches(record.labels))

    def in_namespace(self, namespace: str) -> Iterator[str]:
        return (record.key for record in self._store.scan(BUDGETS, f"{namespace}/"))

    # --- learning ----------------------------------------------------------------------------------------------------------------

    def _on_budget(self, change: Change) -> None:
        self._forget(change.record.key)
        if change.kind != DELETED:
            self._learn(change.record)

    def _learn(self, record: Record) -> None:
        selector = _selector_of(record)
        exact = selector.first_exact()
        place: Place = (record.namespace, *exact) if exact else (record.namespace, None, "")
        self._known[record.key] = _Known(selector, place)
        self._budgets.setdefault(place, set()).add(record.key)

    def _forget(self, key: str) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            _discard(self._budgets, known.place, key)

    def _on_pod(self, change: Change) -> None:
        before = change.previous
        if before is not None and change.kind != DELETED and before.labels == change.record.labels:
            return
        for place in _places(before) if before is not None else ():
            _discard(self._pods, place, change.record.key)
        if change.kind != DELETED:
            self._place_pod(change.record)

    def _place_pod(self, record: Record) -> None:
        for place in _places(record):
            self._pods.setdefault(place, set()).add(record.key)


def _places(pod: Record) -> list[Place]:
    return [(pod.namespace, key, value) for key, value in pod.labels.items()]


def _discard(places: dict[Place, set[str]], place: Place, key: str) -> None:
    keys = places.get(place)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del places[place]


def _selector_of(record: Record) -> Selector:
    """One that cannot be read is about nothing, as in Kubernetes."""
    try:
        return selector_from_object((record.document().get("spec") or {}).get("selector"))
    except ValueError:
        return NOTHING
