"""Which disruption budgets are about which pods, found from either side without looking at all of the others."""

from __future__ import annotations

from collections.abc import Iterator

from herder.api.selectors import NOTHING, Selector, selector_from_object
from herder.rules.matching.selector_index import SelectorIndex
from herder.server.store import DELETED, Change, Record, Store

PODS = "pods"
BUDGETS = "poddisruptionbudgets.policy"


class BudgetIndex:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._index: SelectorIndex[str, str] = SelectorIndex()
        for record in store.scan(BUDGETS):
            self._learn(record)
        for record in store.scan(PODS):
            self._index.set_labels(record.key, record.namespace, record.labels)
        store.listen(BUDGETS, self._on_budget)
        store.listen(PODS, self._on_pod)

    def of_pod(self, pod: Record) -> list[str]:
        """The keys of the budgets whose selectors this pod matches."""
        return self._index.selectors_of(pod.namespace, pod.labels)

    def pods_of(self, key: str) -> Iterator[Record]:
        found = (self._store.get(PODS, pod) for pod in self._index.objects_of(key))
        return (record for record in found if record is not None)

    def in_namespace(self, namespace: str) -> Iterator[str]:
        return (record.key for record in self._store.scan(BUDGETS, f"{namespace}/"))

    def _on_budget(self, change: Change) -> None:
        if change.kind == DELETED:
            self._index.remove_selector(change.record.key)
        else:
            self._learn(change.record)

    def _learn(self, record: Record) -> None:
        self._index.set_selector(record.key, record.namespace, _selector_of(record))

    def _on_pod(self, change: Change) -> None:
        if change.kind == DELETED:
            self._index.remove_labels(change.record.key)
        else:
            self._index.set_labels(change.record.key, change.record.namespace, change.record.labels)


def _selector_of(record: Record) -> Selector:
    """One that cannot be read is about nothing, as in Kubernetes."""
    try:
        return selector_from_object((record.document().get("spec") or {}).get("selector"))
    except ValueError:
        return NOTHING
