"""How many pods of a kind each node has, kept up to date pod by pod.

A crowd is all placed pods that a term speaks of. It is counted when a rule first asks for it, and from then on each pod that comes
or goes adds or takes one. Pods with the same namespace and labels are one group: whether a crowd includes them is asked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from herder.rules.placement.columns import Counts, longer
from herder.rules.placement.needs import Needs
from herder.rules.placement.terms import Others

# Those asked for longest ago are forgotten first.
MOST_CROWDS = 1024
GroupKey = tuple[str, tuple[tuple[str, str], ...], bool]


class CrowdKey(msgspec.Struct, frozen=True):
    """Pods that all of these include. For spreading, those that are about to go do not count."""

    all_of: tuple[Others, ...]
    leaving_too: bool = True


class _Crowd:
    __slots__ = ("key", "per_node")

    def __init__(self, key: CrowdKey, capacity: int) -> None:
        self.key = key
        self.per_node: Counts = np.zeros(capacity, dtype=np.int32)


class _Group:
    __slots__ = ("crowds", "rows")

    def __init__(self, crowds: dict[CrowdKey, _Crowd]) -> None:
        self.rows: dict[int, int] = {}
        self.crowds = crowds


class Crowds:
    def __init__(self, capacity: int, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._capacity = capacity
        self._namespaces = namespaces
        self._groups: dict[GroupKey, _Group] = {}
        self._crowds: dict[CrowdKey, _Crowd] = {}

    def count(self, key: CrowdKey) -> Counts:
        """Of each node. Not to be changed."""
        crowd = self._crowds.pop(key, None)
        if crowd is None:
            crowd = self._gather(key)
        self._crowds[key] = crowd
        return crowd.per_node

    def change(self, pod: Needs, row: int, by: int) -> None:
        group = self._groups.get(pod.group)
        if group is None:
            group = self._groups[pod.group] = _Group(dict(self._of(pod.group)))
        left = group.rows.get(row, 0) + by
        if left:
            group.rows[row] = left
        else:
            group.rows.pop(row, None)
            if not group.rows:
                del self._groups[pod.group]
        for crowd in group.crowds.values():
            crowd.per_node[row] += by

    def namespaces_changed(self) -> None:
        """Which pods are meant may be others now: to be counted again when asked for."""
        for key in [key for key in self._crowds if any(one.by_namespace_labels for one in key.all_of)]:
            self._forget(key)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for crowd in self._crowds.values():
            crowd.per_node = longer(crowd.per_node, capacity)

    def _gather(self, key: CrowdKey) -> _Crowd:
        if len(self._crowds) >= MOST_CROWDS:
            self._forget(next(iter(self._crowds)))
        crowd = _Crowd(key, self._capacity)
        for group_key, group in self._groups.items():
            if self._includes(key, group_key):
                group.crowds[key] = crowd
                for row, number in group.rows.items():
                    crowd.per_node[row] += number
        return crowd

    def _forget(self, key: CrowdKey) -> None:
        del self._crowds[key]
        for group in self._groups.values():
            group.crowds.pop(key, None)

    def _of(self, group: GroupKey) -> Iterable[tuple[CrowdKey, _Crowd]]:
        return ((key, crowd) for key, crowd in self._crowds.items() if self._includes(key, group))

    def _includes(self, key: CrowdKey, group: GroupKey) -> bool:
        namespace, pairs, leaving = group
        if leaving and not key.leaving_too:
            return False
        labels, of_namespace = dict(pairs), self._namespaces.get(namespace, {})
        return all(one.include(namespace, labels, of_namespace) for one in key.all_of)
