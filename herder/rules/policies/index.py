"""Which MigrationPolicy applies to an instance, and why (seed 000).

A policy applies where all pairs of both its selectors are there. So how well it fits does not depend on the instance: the order of
all policies is known beforehand, and the first that applies wins. Each policy is found by one of its pairs, the one that the fewest
others are found by: a question costs as much as there are policies under the labels of the instance, however many exist.

Of several with the very same selectors, which admission refuses unless they come together, only the oldest is used.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Iterable

import msgspec

from herder.api.kinds.migration_state import AppliedPolicy, PolicySettings
from herder.api.kinds.policy import MigrationPolicy
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.configuration import effective as effective_settings
from herder.rules.policies.order import (
    NAMESPACE,
    NO_POLICIES,
    NONE_MATCHES,
    PAIRS,
    Labels,
    Pair,
    Ranked,
    Unused,
    age_of,
    pairs_of,
    rank_of,
    ranked_policy,
    same_selectors_as,
    selects_namespace,
    why_first,
    why_not,
    why_not_first,
)

ALL = sys.maxsize
# Of a status: the keys of 128 labels may be longer than that.
LONGEST_WHY = 4096


class Chosen(msgspec.Struct, frozen=True):
    """The name is None where no policy applies; `why` says why in any case."""

    name: str | None
    why: str
    policy: MigrationPolicy | None = None
    matched_labels: int = 0

    @property
    def settings(self) -> PolicySettings | None:
        return self.policy.spec if self.policy is not None else None

    def applied(self) -> AppliedPolicy:
        """As it stands in the status of a migration."""
        uid = self.policy.uid if self.policy is not None else ""
        return AppliedPolicy(name=self.name or "", uid=uid, matched_labels=self.matched_labels, why=self.why[:LONGEST_WHY])


class PolicyRow(msgspec.Struct, frozen=True):
    """One policy, as `explain` shows it."""

    name: str
    applies: bool
    matches: bool
    labels: int
    why: str


class Policies:
    def __init__(self, policies: Iterable[MigrationPolicy] = ()) -> None:
        self._known: dict[str, Ranked] = {}
        # Those that apply to nothing, whatever else there is.
        self._unusable: dict[str, Unused] = {}
        self._by_pair: dict[Pair, list[Ranked]] = {}
        self._found_by: dict[str, Pair] = {}
        # Those with the same selectors, the oldest first: it is the one that is used.
        self._same: dict[frozenset[Pair], list[Ranked]] = {}
        for policy in policies:
            self.add(policy)

    def __len__(self) -> int:
        return len(self._known) + len(self._unusable)

    def add(self, policy: MigrationPolicy) -> None:
        """Instead of the one of the same name, if there is one."""
        self.remove(policy.name)
        ranked = ranked_policy(policy)
        if isinstance(ranked, Unused):
            self._unusable[policy.name] = ranked
            return
        self._known[policy.name] = ranked
        same = self._same.setdefault(ranked.pairs, [])
        insort(same, ranked, key=age_of)
        if same[0] is ranked:
            if len(same) > 1:
                self._take_out_of_use(same[1])
            self._put_to_use(ranked)

    def remove(self, name: str) -> None:
        self._unusable.pop(name, None)
        ranked = self._known.pop(name, None)
        if ranked is None:
            return
        same = self._same[ranked.pairs]
        was_used = same[0] is ranked
        same.remove(ranked)
        if not same:
            del self._same[ranked.pairs]
        if was_used:
            self._take_out_of_use(ranked)
            if same:
                self._put_to_use(same[0])

    def _put_to_use(self, ranked: Ranked) -> None:
        pair = min(ranked.pairs, key=lambda one: (len(self._by_pair.get(one, ())), one))
        self._found_by[ranked.name] = pair
        insort(self._by_pair.setdefault(pair, []), ranked, key=rank_of)

    def _take_out_of_use(self, ranked: Ranked) -> None:
        pair = self._found_by.pop(ranked.name)
        self._by_pair[pair].remove(ranked)
        if not self._by_pair[pair]:
            del self._by_pair[pair]

    def get(self, name: str) -> MigrationPolicy | None:
        ranked = self._known.get(name)
        return ranked.policy if ranked is not None else None

    def unused(self, name: str) -> Unused | None:
        """Why a policy applies to nothing; None where it may."""
        ranked = self._known.get(name)
        if ranked is None:
            return self._unusable.get(name)
        oldest = self._same[ranked.pairs][0]
        return None if oldest is ranked else same_selectors_as(oldest)

    def same_selectors(self, policy: MigrationPolicy) -> list[str]:
        """The others with the very same selectors, by name. Two of them together are refused: which should it be?"""
        try:
            pairs = pairs_of(policy)
        except ValueError:
            return []
        return sorted(one.name for one in self._same.get(pairs, ()) if one.name != policy.name)

    def matching(self, instance: Labels, namespace: Labels) -> list[MigrationPolicy]:
        """All that apply, the one that wins first."""
        return [ranked.policy for ranked in self._matching(instance, namespace, ALL)]

    def chosen(self, instance: Labels, namespace: Labels) -> Chosen:
        # The second is part of the reason.
        found = self._matching(instance, namespace, 2)
        if not found:
            return Chosen(None, NONE_MATCHES.format(len(self)) if len(self) else NO_POLICIES)
        first = found[0]
        return Chosen(first.name, why_first(first, found[1] if len(found) > 1 else None), first.policy, first.labels)

    def effective(self, cluster: ClusterMigrationSettings, instance: Labels, namespace: Labels) -> PolicySettings:
        """What a migration of this instance would run with now."""
        return effective_settings(cluster, self.chosen(instance, namespace).settings)

    def explain(self, instance: Labels, namespace: Labels) -> list[PolicyRow]:
        """Every policy: those that match in their order, then the others."""
        rows = self._rows(instance, namespace, list(self._known.values()), ALL)
        return rows + [PolicyRow(name, False, False, 0, unused.why) for name, unused in sorted(self._unusable.items())]

    def _why_not(self, ranked: Ranked, instance: Labels, namespace: Labels) -> str:
        unused = self.unused(ranked.name)
        return unused.why if unused is not None else why_not(ranked, instance, namespace)

    def explain_within(self, instance: Labels, namespace: Labels, most: int) -> list[PolicyRow]:
        """For those who may know about their own namespace alone: the first `most` of the policies that could apply there. What
        selects other namespaces may name them, and is left out."""
        here = [one for one in self._known.values() if selects_namespace(one, namespace)]
        return self._rows(instance, namespace, here, most)

    def _rows(self, instance: Labels, namespace: Labels, ranked: list[Ranked], most: int) -> list[PolicyRow]:
        matching = self._matching(instance, namespace, most)
        rows: list[PolicyRow] = []
        for place, one in enumerate(matching):
            why = why_not_first(one, matching[0]) if place else self.chosen(instance, namespace).why
            rows.append(PolicyRow(one.name, not place, True, one.labels, why))
        matched = {one.name for one in matching}
        others = sorted((one for one in ranked if one.name not in matched), key=rank_of)[: most - len(rows)]
        return rows + [PolicyRow(one.name, False, False, one.labels, self._why_not(one, instance, namespace)) for one in others]

    def _matching(self, instance: Labels, namespace: Labels, most: int) -> list[Ranked]:
        """The first `most`, in order."""
        there: set[Pair] = set(instance.items())
        there.update([(key, value, NAMESPACE) for key, value in namespace.items()])
        found: list[Ranked] = []
        by_pair = self._by_pair
        for bucket in [by_pair[pair] for pair in there if pair in by_pair]:
            left = most
            for ranked in bucket:
                if ranked[PAIRS] <= there:
                    found.append(ranked)
                    left -= 1
                    if not left:
                        break
        found.sort(key=rank_of)
        return found[:most]
