"""Where a target may go: what the machine asks for, what this one migration adds, and what the guest was started as."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import Node
from herder.api.guest import Started
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.migration import VirtualMachineInstanceMigrationSpec
from herder.rules.migratability.moving import nobody_has, same_kind_of_node
from herder.rules.placement import Snapshot
from herder.rules.targets import Added, Asked, Impossible, asked_of, constrained, impossible

Document = dict[str, Any]
# The strongest wish there is: all else being equal, nobody goes where many come already.
MOST = 100


def affinity_of_target(
    affinity: Document | None,
    spec: VirtualMachineInstanceMigrationSpec,
    started: Started,
    source: str,
    crowded: tuple[str, ...] = (),
) -> Document:
    made = constrained(
        affinity,
        spec.added_node_selector_term,
        spec.added_node_selector,
        extra=same_kind_of_node(started),
        not_on=source,
    )
    return _rather_not(made, crowded)


def asked_about(instance: VirtualMachineInstance, document: Document, added: Added | None = None) -> Asked:
    """Where could this instance go? The same question for the controller, for `explain` and for the plan of a drain."""
    return asked_of(document, added, same_kind_of_node(started_of(instance)))


def started_of(instance: VirtualMachineInstance) -> Started:
    """As far as it decides where the guest can go on."""
    status = instance.status
    return Started(runtime=(status.runtime or "") if status else "", cpu=status.cpu if status else None)


def no_node_ever(
    instance: VirtualMachineInstance,
    document: Document,
    added: Added | None,
    snapshot: Snapshot,
    nodes: Callable[[], Iterable[Node]],
) -> Impossible | None:
    """Why a migration would fail at once: no node there is can take the guest, whatever room there is. None where one may. `nodes`
    gives those of the snapshot, asked for only where it is to be said what each of them lacks. ValueError where what is added is
    no term."""
    found = impossible(asked_about(instance, document, added), snapshot)
    status = instance.status
    if found is None or found.reason != reasons.MISSING_CPU_FEATURES or status is None or status.cpu is None:
        return found
    lacking = nobody_has(status.cpu, (node for node in nodes() if node.name != status.node_name))
    return msgspec.structs.replace(found, message=f"{found.message}; {lacking}") if lacking else found


def _rather_not(affinity: Document, crowded: tuple[str, ...]) -> Document:
    """A wish and no more: a place that becomes free must not be out of reach of a pod that waits."""
    if not crowded:
        return affinity
    tests = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in crowded]
    wish = {"weight": MOST, "preference": {"matchFields": tests}}
    node_affinity = affinity.get("nodeAffinity", {})
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    return {**affinity, "nodeAffinity": {**node_affinity, name: [*node_affinity.get(name, ()), wish]}}
