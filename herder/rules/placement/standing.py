"""What the pods that are placed already say about others: whom they will not have near, and whom they would like to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from herder.rules.placement.columns import Counts, longer
from herder.rules.placement.needs import Needs
from herder.rules.placement.terms import Term

# A pod that must be near others is glad about those that come: kube-scheduler's weight for that.
REQUIRED_WEIGHT = 1
MOST_ASKERS = 1024


class Said(msgspec.Struct, frozen=True):
    """One term of placed pods. A weight of 0: it forbids."""

    term: Term
    weight: int


class Standing:
    """Equal terms of many pods are one: a Deployment's are."""

    def __init__(self, capacity: int, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._capacity = capacity
        self._namespaces = namespaces
        self._counts: dict[Said, Counts] = {}
        self._pods: dict[Said, int] = {}
        # Which terms speak of pods of this namespace and these labels.
        self._about: dict[tuple[str, tuple[tuple[str, str], ...]], list[Said]] = {}

    def change(self, pod: Needs, row: int, by: int) -> None:
        for said in _said_by(pod):
            if said not in self._counts:
                self._counts[said] = np.zeros(self._capacity, dtype=np.int32)
                self._about.clear()
            self._counts[said][row] += by
            left = self._pods[said] = self._pods.get(said, 0) + by
            if not left:
                del self._counts[said], self._pods[said]
                self._about.clear()

    def about(self, pod: Needs) -> list[tuple[Said, Counts]]:
        """The terms that speak of this pod, and how many pods of each node say so."""
        if not self._counts:
            return []
        key = pod.group[:2]
        known = self._about.get(key)
        if known is None:
            if len(self._about) >= MOST_ASKERS:
                self._about.clear()
            of_namespace = self._namespaces.get(pod.namespace, {})
            known = [said for said in self._counts if said.term.others.include(pod.namespace, pod.labels, of_namespace)]
            self._about[key] = known
        return [(said, self._counts[said]) for said in known]

    def namespaces_changed(self) -> None:
        self._about.clear()

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for said, counts in self._counts.items():
            self._counts[said] = longer(counts, capacity)


def _said_by(pod: Needs) -> Iterable[Said]:
    for term in pod.far:
        yield Said(term, 0)
    for term in pod.near:
        yield Said(term, REQUIRED_WEIGHT)
    for wish in pod.wishes:
        yield Said(wish.term, wish.weight)
