"""What a guest that runs requires of the node that it is moved to: the processor that it was started with (seed 002).

It is recorded on the instance at its start and never chosen anew, so that going back to its first node always works.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herder.api import labels
from herder.api.core import Node
from herder.api.guest import Started
from herder.api.kinds.instance import StartedCPU
from herder.api.meta import NodeSelectorRequirement as Requirement
from herder.rules.migratability.profile import profile_of

# As nodes are labelled. A guest of one must not go to a node of another, but may go to one that does not say.
VENDORS = ("AMD", "Hygon", "Intel")
# Whatever the node has: no other node is sure to have it, so such guests are not moved.
WHATEVER_IS_THERE = ("host", "max")
MOST_NODES = 5


def needs(cpu: StartedCPU) -> frozenset[str]:
    """As label keys. A feature that was forced is one that even its first node may lack; one that is off is needed nowhere."""
    features = [labels.CPU_FEATURE + one.name for one in cpu.features or () if one.policy in (None, "require", "optional")]
    model = [labels.CPU_MODEL_MIGRATION + cpu.model] if cpu.model and cpu.model not in WHATEVER_IS_THERE else []
    return frozenset((*model, *features))


def target_requirements(cpu: StartedCPU) -> tuple[Requirement, ...]:
    """For every non-empty term of the target pod's required node affinity."""
    has = [Requirement(key=key, operator="In", values=("true",)) for key in sorted(needs(cpu))]
    others = [vendor for vendor in VENDORS if cpu.vendor and vendor != cpu.vendor]
    return (*has, *(Requirement(key=labels.CPU_VENDOR + vendor, operator="DoesNotExist") for vendor in others))


def same_kind_of_node(started: Started) -> list[dict[str, Any]]:
    """A guest goes on only in the same kind of machine. As further tests of a required node affinity."""
    runtime = [Requirement(key=labels.RUNTIME, operator="In", values=(started.runtime,))] if started.runtime else []
    cpu = target_requirements(started.cpu) if started.cpu is not None else ()
    return [_written(one) for one in (*runtime, *cpu)]


def _written(test: Requirement) -> dict[str, Any]:
    return {"key": test.key, "operator": test.operator, **({"values": list(test.values)} if test.values else {})}


def missing(cpu: StartedCPU, node: Node) -> tuple[str, ...]:
    """What the node lacks for this guest: `model Haswell`, names of features, or the vendor; nothing where it would take it."""
    return profile_of(node.labels).lacks(needs(cpu), cpu.vendor or "")


def nobody_has(cpu: StartedCPU, nodes: Iterable[Node]) -> str:
    """What each of these nodes lacks, in one sentence; empty where one of them lacks nothing."""
    found = [(node.name, missing(cpu, node)) for node in nodes]
    if not found or any(not lacking for _, lacking in found):
        return ""
    found.sort(key=lambda one: (len(one[1]), one[0]))
    told = [f"{name} lacks {', '.join(lacking)}" for name, lacking in found[:MOST_NODES]]
    more = f"; and {len(found) - MOST_NODES} more nodes lack something" if len(found) > MOST_NODES else ""
    return "; ".join(told) + more
