"""How many running instances each policy applies to, kept while instances, namespaces and policies come, change and go.

Nothing is counted anew. An instance knows the policies that match it, in their order, and a policy the instances that it matches.
So an instance that changes costs one question to the index, and a policy that changes costs the instances that have its rarest
label, not all of them with all policies.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeVar

import msgspec

from herder.rules.policies.index import ALL, Policies
from herder.rules.policies.order import Labels, Pair, Ranked, rank_of

# Namespace and name.
Name = tuple[str, str]
K = TypeVar("K")
V = TypeVar("V")


class Counts(msgspec.Struct, frozen=True):
    """Running instances: those of which the policy is the first, and those that have its labels."""

    applied: int = 0
    matching: int = 0


class _Instance(msgspec.Struct):
    labels: Labels
    # The first is the one that applies.
    policies: list[Ranked]


class Usage(Policies):
    """The policies, and the running instances that each is for."""

    def __init__(self) -> None:
        super().__init__()
        self._instances: dict[Name, _Instance] = {}
        self._namespaces: dict[str, Labels] = {}
        self._by_namespace: dict[str, set[Name]] = {}
        self._by_label: dict[Pair, set[Name]] = {}
        self._by_namespace_label: dict[Pair, set[str]] = {}
        self._matched: dict[str, set[Name]] = {}
        self._applied: dict[str, int] = {}
        self._changed: set[str] = set()

    def counts(self, policy: str) -> Counts:
        return Counts(self._applied.get(policy, 0), len(self._matched.get(policy, ())))

    def take_changed(self) -> list[str]:
        """The policies whose counts may be others than when this was last asked, by name."""
        changed = sorted(self._changed)
        self._changed.clear()
        return changed

    def put_instance(self, name: Name, labels: Labels | None) -> None:
        """None for one that does not run, or is gone."""
        known = self._instances.get(name)
        if (known.labels if known is not None else None) == labels:
            return
        if known is not None:
            self._match(known, name, [])
            del self._instances[name]
            _discard(self._by_namespace, name[0], name)
            for pair in known.labels.items():
                _discard(self._by_label, pair, name)
        if labels is not None:
            instance = self._instances[name] = _Instance(labels, [])
            self._by_namespace.setdefault(name[0], set()).add(name)
            for pair in labels.items():
                self._by_label.setdefault(pair, set()).add(name)
            self._match(instance, name, self._matching(labels, self._labels_of(name[0]), ALL))

    def put_namespace(self, name: str, labels: Labels) -> None:
        """Without labels for one that is gone."""
        before = self._namespaces.pop(name, {})
        if labels:
            self._namespaces[name] = labels
        if before == labels:
            return
        for pair in before.items():
            _discard(self._by_namespace_label, pair, name)
        for pair in labels.items():
            self._by_namespace_label.setdefault(pair, set()).add(name)
        for one in self._by_namespace.get(name, ()):
            instance = self._instances[one]
            self._match(instance, one, self._matching(instance.labels, labels, ALL))

    def _match(self, instance: _Instance, name: Name, policies: list[Ranked]) -> None:
        """These policies match it now, and no others."""
        before = instance.policies
        for ranked in before:
            _discard(self._matched, ranked.name, name)
        for ranked in policies:
            self._matched.setdefault(ranked.name, set()).add(name)
        instance.policies = policies
        self._changed |= {ranked.name for ranked in before} ^ {ranked.name for ranked in policies}
        self._shift(_first(before), _first(policies))

    def _shift(self, before: Ranked | None, after: Ranked | None) -> None:
        """The policy that applies to an instance was the one, and is the other."""
        if before is after:
            return
        for ranked, change in ((before, -1), (after, 1)):
            if ranked is not None:
                self._changed.add(ranked.name)
                self._applied[ranked.name] = self._applied.get(ranked.name, 0) + change
                if not self._applied[ranked.name]:
                    del self._applied[ranked.name]

    def _put_to_use(self, ranked: Ranked) -> None:
        super()._put_to_use(ranked)
        # Those that are not used because of it say so by its name.
        self._changed |= {one.name for one in self._same[ranked.pairs]}
        found = self._having_all(ranked)
        if found:
            self._matched[ranked.name] = found
        for name in found:
            policies = self._instances[name].policies
            before = _first(policies)
            insort(policies, ranked, key=rank_of)
            self._shift(before, policies[0])

    def _take_out_of_use(self, ranked: Ranked) -> None:
        super()._take_out_of_use(ranked)
        self._changed.add(ranked.name)
        for name in self._matched.pop(ranked.name, ()):
            policies = self._instances[name].policies
            before = policies[0]
            del policies[bisect_left(policies, ranked.rank, key=rank_of)]
            self._shift(before, _first(policies))

    def _having_all(self, ranked: Ranked) -> set[Name]:
        """The instances that it matches: looked for among those that have the label of it that the fewest have."""
        own = [pair for pair in ranked.pairs if len(pair) == 2]
        around = [self._by_namespace_label.get(pair[:2], set()) for pair in ranked.pairs if len(pair) > 2]
        namespaces = set[str].intersection(*around) if around else None
        candidates = min((self._by_label.get(pair, set()) for pair in own), key=len, default=None)
        if namespaces is not None:
            inside = [self._by_namespace.get(name, set()) for name in namespaces]
            if candidates is None or sum(map(len, inside)) < len(candidates):
                candidates = set[Name]().union(*inside)
        return {name for name in candidates or () if self._is_matched(name, own, namespaces)}

    def _is_matched(self, name: Name, own: list[Pair], namespaces: set[str] | None) -> bool:
        labels = self._instances[name].labels
        return (namespaces is None or name[0] in namespaces) and all(labels.get(key) == value for key, value in own)

    def _labels_of(self, namespace: str) -> Labels:
        return self._namespaces.get(namespace, {})


def _first(policies: list[Ranked]) -> Ranked | None:
    return policies[0] if policies else None


def _discard(sets: dict[K, set[V]], key: K, value: V) -> None:
    """What is empty goes: names come and go for ever."""
    known = sets.get(key, set())
    known.discard(value)
    if not known:
        sets.pop(key, None)
