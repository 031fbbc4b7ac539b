"""Levels in words: of every node, of one, or of a guest that runs; and for each other node what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.kinds.instance import StartedCPU
from herder.rules.migratability.levels import Count, Levels
from herder.rules.migratability.moving import missing
from herder.rules.migratability.profile import Profile, counted, profile_of, schedulable


class Row(msgspec.Struct, frozen=True):
    """One node as a first node, or as a target."""

    node: str
    # Why it does not count; empty where it does.
    closed: str = ""
    model: str = ""
    count: Count | None = None
    # As a target: what it lacks. As a first node: what others lack for its guests.
    lacks: tuple[str, ...] = ()


def all_nodes(nodes: Iterable[Node]) -> list[Row]:
    """By level, the best first."""
    known = {node.name: node for node in nodes}
    open_ = {name: profile for name, node in known.items() if (profile := counted(node)) is not None}
    levels, classes = Levels(open_), Counter(open_.values())
    lacking = {profile: _keeps_away(profile, classes) for profile in classes}
    rows = [
        Row(
            name, why_closed(node), profile_of(node.labels).model, levels.count(name), lacking[open_[name]] if name in open_ else ()
        )
        for name, node in known.items()
    ]
    return sorted(rows, key=lambda row: (-(row.count.level if row.count else -1), row.node))


def why_closed(node: Node) -> str:
    """Empty where guests can be started there."""
    if schedulable(node):
        return ""
    if node.being_deleted:
        return "is being deleted"
    if node.spec.unschedulable:
        return "is cordoned"
    return "takes no guests" if node.labels.get(labels.SCHEDULABLE, "true") != "true" else "is not ready"


def _keeps_away(own: Profile, classes: Mapping[Profile, int]) -> tuple[str, ...]:
    """What other nodes lack for guests of this kind of node; what most of them lack first."""
    found: Counter[str] = Counter()
    for profile, members in classes.items():
        for word in profile.lacks(own.needs, own.vendor):
            found[word] += members
    return tuple(sorted(found, key=lambda word: (-found[word], word)))


def from_node(first: Node, nodes: Iterable[Node]) -> list[Row]:
    """Of a host-model guest that is first started there."""
    own = profile_of(first.labels)
    nothing = () if own.model else ("a host model on its first node",)
    return _targets(nodes, first.name, lambda node: nothing or profile_of(node.labels).lacks(own.needs, own.vendor))


def from_guest(cpu: StartedCPU, here: str, nodes: Iterable[Node]) -> list[Row]:
    """Of a guest that runs, with what is recorded of it."""
    return _targets(nodes, here, lambda node: missing(cpu, node))


def _targets(nodes: Iterable[Node], here: str, lacks: Callable[[Node], tuple[str, ...]]) -> list[Row]:
    """Those that take it first, then those that lack least."""
    rows = [
        Row(node.name, why_closed(node), profile_of(node.labels).model, lacks=lacks(node)) for node in nodes if node.name != here
    ]
    return sorted(rows, key=lambda row: (bool(row.closed), len(row.lacks), row.node))


def takers(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if not row.closed and not row.lacks]
