"""Levels in words: of every node, of one, or of a guest that runs; and for each other node what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.kinds.instance import StartedCPU
from herder.rules.migratability.levels import Count, Levels
from herder.rules.migratability.moving import needs
from herder.rules.migratability.profile import Profile, counted, profile_of, schedulable


class LevelRow(msgspec.Struct, frozen=True, rename="camel"):
    """One node as the first node of host-model guests. `takers` of `of` nodes would take them: hence the level."""

    node: str
    # Why it does not count; empty where it does. Then it has no level.
    closed: str
    # What host-model becomes there; empty where no such guest can start.
    model: str
    level: int | None = None
    takers: int | None = None
    of: int | None = None
    # What other nodes lack for its guests; what most of them lack first.
    others_lack: tuple[str, ...] = ()


class TakerRow(msgspec.Struct, frozen=True, rename="camel"):
    """One node as a target of one guest."""

    node: str
    takes: bool
    # Why it takes no guests at all now; empty where it does.
    closed: str
    model: str
    # How many of the model and the features that the guest needs are there.
    shared: int
    needed: int
    lacks: tuple[str, ...]


class ClusterLevels(msgspec.Struct, frozen=True, rename="camel"):
    nodes: tuple[LevelRow, ...]


class NodeTakers(msgspec.Struct, frozen=True, rename="camel"):
    """Who would take a host-model guest that is first started on this node."""

    first_node: LevelRow
    nodes: tuple[TakerRow, ...]


class GuestTakers(msgspec.Struct, frozen=True, rename="camel"):
    """Who would take a guest that runs, by what is recorded of it."""

    namespace: str
    name: str
    node_name: str
    model: str
    vendor: str
    features: tuple[str, ...]
    takers: int
    nodes: tuple[TakerRow, ...]


def explain_levels(nodes: Iterable[Node]) -> ClusterLevels:
    """By level, the best first."""
    known = {node.name: node for node in nodes}
    open_ = {name: profile for name, node in known.items() if (profile := counted(node)) is not None}
    levels, classes = Levels(open_), Counter(open_.values())
    lacking = {profile: _keeps_away(profile, classes) for profile in classes}
    rows = [_level_row(node, levels.count(name), lacking[open_[name]] if name in open_ else ()) for name, node in known.items()]
    return ClusterLevels(tuple(sorted(rows, key=lambda row: (-(row.level if row.level is not None else -1), row.node))))


def _level_row(node: Node, count: Count | None, others_lack: tuple[str, ...]) -> LevelRow:
    row = LevelRow(node.name, why_closed(node), profile_of(node.labels).model, others_lack=others_lack)
    return row if count is None else msgspec.structs.replace(row, level=count.level, takers=count.takers, of=count.nodes)


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


def explain_node(first: Node, nodes: Iterable[Node]) -> NodeTakers:
    known = list(nodes)
    own = profile_of(first.labels)
    level = next(row for row in explain_levels(known).nodes if row.node == first.name)
    rows = _takers(known, first.name, own.needs, own.vendor)
    if not own.model:
        rows = tuple(msgspec.structs.replace(row, takes=False, lacks=("a host model on its first node",)) for row in rows)
    return NodeTakers(level, rows)


def explain_guest(key: tuple[str, str], cpu: StartedCPU, here: str, nodes: Iterable[Node]) -> GuestTakers:
    """`key` is the namespace and the name of the instance, `here` the node that it runs on."""
    rows = _takers(nodes, here, needs(cpu), cpu.vendor or "")
    features = tuple(one.name for one in cpu.features or () if one.policy in (None, "require"))
    return GuestTakers(*key, here, cpu.model or "", cpu.vendor or "", features, sum(row.takes for row in rows), rows)


def _takers(nodes: Iterable[Node], here: str, needed: frozenset[str], vendor: str) -> tuple[TakerRow, ...]:
    """Those that take it first, then those that lack least."""
    rows = [_taker_row(node, needed, vendor) for node in nodes if node.name != here]
    return tuple(sorted(rows, key=lambda row: (bool(row.closed), len(row.lacks), row.node)))


def _taker_row(node: Node, needed: frozenset[str], vendor: str) -> TakerRow:
    profile, closed = profile_of(node.labels), why_closed(node)
    lacks = profile.lacks(needed, vendor)
    shared = len(needed & profile.offers)
    return TakerRow(node.name, not lacks and not closed, closed, profile.model, shared, len(needed), lacks)
