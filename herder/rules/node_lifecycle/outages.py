"""Which of the nodes that are away are emptied, and how fast. Many at once are rather a broken network than many broken nodes: then
it goes slowly, or not at all. All of them at once: it is us who are cut off."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

import msgspec

from herder.api.core import Node
from herder.rules.node_lifecycle.taints import emptied, emptying, readiness

# Kubernetes' own numbers: node-eviction-rate, secondary-node-eviction-rate, unhealthy-zone-threshold, large-cluster-size-threshold.
SECONDS_BETWEEN = 10.0
SECONDS_BETWEEN_IN_TROUBLE = 100.0
UNHEALTHY_SHARE = 0.55
UNHEALTHY_LEAST = 3
LARGE = 50
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


class OutagePlan(msgspec.Struct, frozen=True):
    # Names of nodes.
    empty: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    next_look: float | None = None


def plan_outages(nodes: Sequence[Node], now: float) -> OutagePlan:
    """Of all nodes."""
    zones: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        if readiness(node):
            zones.setdefault((node.labels.get(REGION, ""), node.labels.get(ZONE, "")), []).append(node)
    if not any(_well(zone) for zone in zones.values()):
        return OutagePlan(spare=tuple(node.name for node in nodes if emptied(node)))
    found = [_plan_zone(zone, now) for zone in zones.values()]
    looks = [one.next_look for one in found if one.next_look is not None]
    return OutagePlan(empty=tuple(name for one in found for name in one.empty), next_look=min(looks, default=None))


def _plan_zone(zone: list[Node], now: float) -> OutagePlan:
    """One after the other, the one that has been away for longest first. When the last was emptied is written on it."""
    waiting = sorted((node for node in zone if emptying(node) and not emptied(node)), key=_away_since)
    pause = _pause(zone)
    if not waiting or pause is None:
        return OutagePlan()
    last = max((at.timestamp() for at in _times(zone)), default=None)
    # A clock that was turned back does not make anybody wait for longer.
    wait = 0.0 if last is None else min(pause, last + pause - now)
    if wait > 0:
        return OutagePlan(next_look=wait)
    return OutagePlan(empty=(waiting[0].name,), next_look=pause if len(waiting) > 1 else None)


def _pause(zone: list[Node]) -> float | None:
    """Seconds between two nodes; None: nobody."""
    away = len(zone) - len(_well(zone))
    if len(zone) == away or away < UNHEALTHY_LEAST or away / len(zone) < UNHEALTHY_SHARE:
        return SECONDS_BETWEEN
    return SECONDS_BETWEEN_IN_TROUBLE if len(zone) > LARGE else None


def _well(zone: Iterable[Node]) -> list[Node]:
    return [node for node in zone if readiness(node) == "True"]


def _times(zone: Iterable[Node]) -> Iterable[datetime.datetime]:
    return (taint.time_added for node in zone for taint in emptied(node) if taint.time_added is not None)


def _away_since(node: Node) -> tuple[float, str]:
    since = next((one.last_transition_time for one in node.status.conditions if one.type == "Ready"), None)
    return (since.timestamp() if since is not None else 0.0, node.name)
