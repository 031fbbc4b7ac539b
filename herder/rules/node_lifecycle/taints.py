"""The taints by which nodes say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from herder.api.core import Node
from herder.api.core.nodes import Taint
from herder.api.world import timestamp
from herder.rules.plans import Document, moment

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
# Of a condition that has this status follows this taint.
_OF_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): DISK_PRESSURE,
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset({*_OF_CONDITION.values(), UNSCHEDULABLE})
AWAY: Final = (NOT_READY, UNREACHABLE)

Readiness = Literal["True", "False", "Unknown", ""]


def readiness(node: Node) -> Readiness:
    """Empty where nobody has said anything about it yet."""
    found = next((one.status for one in node.status.conditions if one.type == "Ready"), "")
    return found if found in ("True", "False", "Unknown") else ""


def closing(node: Node) -> list[str]:
    """For which reasons nothing new may come there: keys of NoSchedule taints."""
    found = [key for one in node.status.conditions if (key := _OF_CONDITION.get((one.type, one.status)))]
    return [*found, UNSCHEDULABLE] if node.spec.unschedulable else found


def emptying(node: Node) -> str | None:
    """For which reason what is there has to leave, sooner or later: the key of a NoExecute taint."""
    return _OF_CONDITION.get(("Ready", readiness(node)))


def emptied(node: Node) -> list[Taint]:
    """The NoExecute taints that the node has because it is away."""
    return [one for one in node.spec.taints if one.key in AWAY and one.effect == NO_EXECUTE]


def in_order(node: Node, now: float) -> list[Document] | None:
    """All taints as they should be; None where they are. What empties a node is only taken away or exchanged here: that it is
    emptied at all is not the decision of one node alone."""
    wanted = [(key, NO_SCHEDULE) for key in closing(node)]
    if emptied(node) and (key := emptying(node)) is not None:
        wanted.append((key, NO_EXECUTE))
    return _with(node, wanted, now)


def with_emptying(node: Node, now: float) -> list[Document]:
    added = Taint(key=emptying(node) or "", effect=NO_EXECUTE, time_added=moment(now))
    return _sorted([*node.spec.taints, added])


def without_emptying(node: Node) -> list[Document]:
    gone = emptied(node)
    return [_document(one) for one in node.spec.taints if one not in gone]


def _with(node: Node, wanted: Iterable[tuple[str, str]], now: float) -> list[Document] | None:
    wanted = list(wanted)
    kept = [one for one in node.spec.taints if not _is_ours(one) or (one.key, one.effect) in wanted]
    there = {(one.key, one.effect) for one in kept}
    added = [Taint(key=key, effect=effect, time_added=moment(now)) for key, effect in wanted if (key, effect) not in there]
    if not added and len(kept) == len(node.spec.taints):
        return None
    return _sorted([*kept, *added])


def _sorted(taints: list[Taint]) -> list[Document]:
    """Ours behind all others, in an order that does not depend on which came first."""
    ours = sorted((one for one in taints if _is_ours(one)), key=lambda one: (one.effect == NO_EXECUTE, one.key))
    return [_document(one) for one in (*(one for one in taints if not _is_ours(one)), *ours)]


def _is_ours(taint: Taint) -> bool:
    return taint.key in (_OURS if taint.effect == NO_SCHEDULE else AWAY if taint.effect == NO_EXECUTE else ())


def _document(taint: Taint) -> Document:
    when = {"timeAdded": timestamp(taint.time_added.timestamp())} if taint.time_added is not None else {}
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect, **when}
