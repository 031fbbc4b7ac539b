"""The order of MigrationPolicies (seed 000), and the sentences that say why one comes before another or does not match."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

from herder.api import reasons
from herder.api.kinds.policy import NO_SELECTORS, MigrationPolicy
from herder.api.normalise import label_pairs

Labels = Mapping[str, str]
# (key, value) of the instance, (key, value, NAMESPACE) of its namespace.
Pair = tuple[str, ...]
NAMESPACE = "namespace"
NO_POLICIES = "there are no MigrationPolicies: the cluster's settings apply"
NONE_MATCHES = "no MigrationPolicy matches (there are {}): the cluster's settings apply"


class Rank(NamedTuple):
    """The smallest goes first. Total, because names are."""

    fewer_labels: int
    keys: tuple[str, ...]
    fewer_instance_labels: int
    name: str


class Ranked(NamedTuple):
    """A policy at its place in the order."""

    rank: Rank
    pairs: frozenset[Pair]
    policy: MigrationPolicy

    @property
    def name(self) -> str:
        return self.rank.name

    @property
    def labels(self) -> int:
        return len(self.pairs)


class Unused(NamedTuple):
    """Why a policy applies to nothing: a word, and a sentence."""

    reason: str
    why: str


_NEW = datetime.datetime.max.replace(tzinfo=datetime.UTC)


def age_of(ranked: Ranked) -> tuple[datetime.datetime, str, str]:
    """The smallest is the oldest. Of two that were made in the same second the one with the smaller uid counts as older."""
    metadata = ranked.policy.metadata
    return metadata.creation_timestamp or _NEW, metadata.uid or "", ranked.name


rank_of = itemgetter(0)
# Where the pairs are in a Ranked: asked thousands of times, and a number is faster than a name.
PAIRS = 1


def pairs_of(policy: MigrationPolicy) -> frozenset[Pair]:
    """ValueError for a value that can be no label."""
    selectors = policy.spec.selectors
    if selectors is None:
        return frozenset()
    instance = label_pairs(selectors.virtual_machine_instance_selector)
    namespace = label_pairs(selectors.namespace_selector)
    return frozenset([*instance.items(), *((key, value, NAMESPACE) for key, value in namespace.items())])


def ranked_policy(policy: MigrationPolicy) -> Ranked | Unused:
    """Or why it applies to nothing."""
    try:
        pairs = pairs_of(policy)
    except ValueError as error:
        return Unused(reasons.INVALID, f"spec.selectors: {error}")
    if not pairs:
        return Unused(reasons.NO_SELECTORS, NO_SELECTORS)
    of_instance = sum(len(pair) == 2 for pair in pairs)
    rank = Rank(-len(pairs), tuple(sorted(pair[0] for pair in pairs)), -of_instance, policy.name)
    return Ranked(rank, pairs, policy)


def selects_namespace(ranked: Ranked, namespace: Labels) -> bool:
    """Whether machines of this namespace could have the policy, whatever labels they have themselves."""
    return all(namespace.get(pair[0]) == pair[1] for pair in ranked.pairs if len(pair) > 2)


def same_selectors_as(older: Ranked) -> Unused:
    why = f"MigrationPolicy {older.name} has the same selectors and is older: add a label, or change {older.name}"
    return Unused(reasons.DUPLICATE_SELECTORS, why)


def why_first(first: Ranked, second: Ranked | None) -> str:
    matched = f"{first.name} matches {_labels(first)}"
    if second is None:
        return f"{matched}, and no other policy matches"
    return f"{matched} and goes before {second.name}: {_before(first.rank, second.rank)}"


def why_not_first(ranked: Ranked, first: Ranked) -> str:
    return f"matches {_labels(ranked)}, but {first.name} goes before it: {_before(first.rank, ranked.rank)}"


def why_not(ranked: Ranked, instance: Labels, namespace: Labels) -> str:
    """Every pair that is missing, and what is there instead."""
    missing: list[str] = []
    for pair in sorted(ranked.pairs):
        key, value, *of_namespace = pair
        labels, whose = (namespace, "the namespace") if of_namespace else (instance, "the instance")
        has = labels.get(key)
        if has is None:
            missing.append(f"{whose} has no label {key} (wanted: {value})")
        elif has != value:
            missing.append(f"{whose} has {key}={has} (wanted: {value})")
    return "; ".join(missing)


def _before(first: Rank, second: Rank) -> str:
    """The first of the rules that tells the two apart."""
    if first.fewer_labels != second.fewer_labels:
        return f"{-first.fewer_labels} matching labels are more than {-second.fewer_labels}"
    both = f"both match {_count(-first.fewer_labels)}"
    if first.keys != second.keys:
        one, other = next(pair for pair in zip(first.keys, second.keys, strict=True) if pair[0] != pair[1])
        return f"{both}, and of their sorted keys {one} comes before {other}"
    if first.fewer_instance_labels != second.fewer_instance_labels:
        mine, other = -first.fewer_instance_labels, -second.fewer_instance_labels
        return f"{both} with the same keys, {mine} of them on the instance against {other}"
    return f"{both} with the same keys; {first.name} comes first by name"


def _labels(ranked: Ranked) -> str:
    return f"{_count(ranked.labels)} ({', '.join(ranked.rank.keys)})"


def _count(labels: int) -> str:
    return f"{labels} label" if labels == 1 else f"{labels} labels"
