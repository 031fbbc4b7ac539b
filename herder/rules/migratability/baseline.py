"""What nodes have in common: the model and the features that a machine can name to be movable among all of them.

Beyond the seed: the level says how bad a mixed cluster is, the baseline what to do about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.rules.migratability.levels import Count, Levels
from herder.rules.migratability.profile import counted, schedulable

# Of each vendor from the oldest to the newest, as QEMU and libvirt call them. What follows (-IBRS, -noTSX, -v2) is a variant.
INTEL = """qemu64 kvm64 486 pentium coreduo core2duo Conroe Penryn Nehalem Westmere SandyBridge IvyBridge Haswell Broadwell
    Skylake-Client Skylake-Server Cascadelake-Server Cooperlake Icelake-Client Icelake-Server Snowridge SapphireRapids
    SierraForest GraniteRapids ClearwaterForest"""
AMD = """phenom athlon Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 Dhyana EPYC EPYC-Rome EPYC-Milan EPYC-Genoa
    EPYC-Turin"""
GENERATIONS = (INTEL.split(), AMD.split())


class Change(msgspec.Struct, frozen=True, rename="camel"):
    """The level of a node now, and with machines that name the baseline."""

    node: str
    level_now: int
    # None, both of them, where a machine with the baseline cannot start.
    level_then: int | None
    takers_then: int | None
    of: int


class Baseline(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    nodes: tuple[str, ...]
    # The newest that all have; empty where there is none.
    model: str
    models: tuple[str, ...]
    features: tuple[str, ...]
    # Of those, what some node's host model asks for beyond its model: what a machine may want to name beside the model.
    beyond: tuple[str, ...]
    vendors: tuple[str, ...]
    changes: tuple[Change, ...]


def baseline_of(chosen: Sequence[Node], nodes: Iterable[Node]) -> Baseline:
    """Of the chosen ones that take guests, and what every node's level would be if machines used it."""
    open_ = [node for node in chosen if schedulable(node)]
    models = _common(open_, labels.CPU_MODEL) & _common(open_, labels.CPU_MODEL_MIGRATION)
    features = _common(open_, labels.CPU_FEATURE)
    wanted = {name for node in open_ for name in _names(node, labels.HOST_MODEL_REQUIRED_FEATURES)}
    model = max(models, key=newness, default="")
    beyond = tuple(sorted(features & wanted))
    return Baseline(
        nodes=tuple(sorted(node.name for node in open_)),
        model=model,
        models=tuple(sorted(models, key=newness, reverse=True)),
        features=tuple(sorted(features)),
        beyond=beyond,
        vendors=tuple(sorted({name for node in open_ for name in _names(node, labels.CPU_VENDOR)})),
        changes=_changes(model, beyond, list(nodes)),
    )


def newness(model: str) -> tuple[int, int, str]:
    """By which models are compared. Those that nobody knows are the oldest."""
    found = [
        (place, len(name))
        for family in GENERATIONS
        for place, name in enumerate(family)
        if model == name or model.startswith(f"{name}-")
    ]
    # The longest name that fits: EPYC-Rome is not an EPYC.
    place, _ = max(found, key=lambda one: one[1], default=(-1, 0))
    return (place, len(model), model)


def _changes(model: str, features: tuple[str, ...], nodes: list[Node]) -> tuple[Change, ...]:
    """Of every node, as for a host model: the others that would take the guest, of all."""
    profiles = {node.name: profile for node in nodes if (profile := counted(node)) is not None}
    levels, classes = Levels(profiles), Counter(profiles.values())
    needs = frozenset((labels.CPU_MODEL_MIGRATION + model, *(labels.CPU_FEATURE + name for name in features)))
    takers = {own: sum(classes[one] for one in classes if not one.lacks(needs, own.vendor)) for own in classes}
    able = {node.name for node in nodes if model and node.labels.get(labels.CPU_MODEL + model) == "true"}
    return tuple(
        _change(name, levels, takers[own] - 1 if name in able and not own.lacks(needs, "") else None)
        for name, own in sorted(profiles.items())
    )


def _change(name: str, levels: Levels, takers: int | None) -> Change:
    then = Count(takers, len(levels)).level if takers is not None else None
    return Change(name, levels.level(name) or 0, then, takers, len(levels))


def _common(nodes: Sequence[Node], prefix: str) -> frozenset[str]:
    sets = [_names(node, prefix) for node in nodes]
    return frozenset.intersection(*sets) if sets else frozenset()


def _names(node: Node, prefix: str) -> frozenset[str]:
    return frozenset(key[len(prefix) :] for key, value in node.labels.items() if key.startswith(prefix) and value == "true")
