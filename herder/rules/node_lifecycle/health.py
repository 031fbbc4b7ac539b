"""Whether a node is still there. It says so by its Lease; one that has not said so for a while is Unknown, and closed."""

from __future__ import annotations

import datetime

import msgspec

from herder.api import reasons
from herder.api.core import Node
from herder.api.world import timestamp
from herder.rules.node_lifecycle.taints import in_order, readiness
from herder.rules.plans import Document, Event

# What an agent tells of its node. It is all unknown once the agent is silent.
TOLD = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Patience(msgspec.Struct, frozen=True):
    """Kubernetes' own numbers (node-monitor-grace-period, node-startup-grace-period)."""

    grace: float = 50.0
    startup: float = 60.0

    def with_node(self, node: Node, lease_seconds: int) -> float:
        """One that has never said anything may still be starting. One whose Lease is good for longer means to say less."""
        return max(self.grace, lease_seconds) if readiness(node) else self.startup


class NodePlan(msgspec.Struct, frozen=True):
    # Conditions to write, by type.
    conditions: tuple[Document, ...] = ()
    # All taints, where they are not right.
    taints: list[Document] | None = None
    events: tuple[Event, ...] = ()
    # When silence would become too long.
    next_look: float | None = None


def plan_node(node: Node, silent_for: float, lease_seconds: int, patience: Patience, now: float) -> NodePlan:
    """`silent_for`: by our own clock, since we last heard of it. What its clock says does not count."""
    limit = patience.with_node(node, lease_seconds)
    if silent_for < limit:
        return NodePlan(taints=in_order(node, now), next_look=limit - silent_for)
    conditions = tuple(found for kind in TOLD if (found := _unknown(node, kind, now)) is not None)
    # Taints follow from conditions: once those are written, this is asked again.
    events = (_not_ready(node),) if conditions and readiness(node) == "True" else ()
    return NodePlan(conditions, None if conditions else in_order(node, now), events)


def is_settled(node: Node) -> bool:
    """It is well, and looks so: only silence would change anything."""
    return readiness(node) == "True" and in_order(node, 0.0) is None


def _unknown(node: Node, kind: str, now: float) -> Document | None:
    old = next((one for one in node.status.conditions if one.type == kind), None)
    if old is None:
        heard = node.metadata.creation_timestamp
        reason, message = reasons.NODE_STATUS_NEVER_UPDATED, "Kubelet never posted node status."
    elif old.status != "Unknown":
        heard = old.last_heartbeat_time
        reason, message = reasons.NODE_STATUS_UNKNOWN, "Kubelet stopped posting node status."
    else:
        return None
    last = {"lastHeartbeatTime": timestamp(heard.timestamp())} if heard is not None else {}
    return {"type": kind, "status": "Unknown", "reason": reason, "message": message, **last, "lastTransitionTime": timestamp(now)}


def _not_ready(node: Node) -> Event:
    return Event("Normal", reasons.NODE_NOT_READY, f"Node {node.name} status is now: NodeNotReady")


def last_heartbeat(node: Node) -> datetime.datetime | None:
    """Leases are how nodes say that they are there; a new status says it as well."""
    return next((one.last_heartbeat_time for one in node.status.conditions if one.type == "Ready"), None)
