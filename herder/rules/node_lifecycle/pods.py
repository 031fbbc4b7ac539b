"""What becomes of a pod whose node is in trouble: it is not ready any more, it has to leave, or it is gone with its node."""

from __future__ import annotations

import datetime

import msgspec

from herder.api import reasons
from herder.api.core import Node, Pod
from herder.api.core.nodes import Taint
from herder.api.world import timestamp
from herder.rules.instances.observed import fenced
from herder.rules.matching.taints import tolerates
from herder.rules.node_lifecycle.taints import NO_EXECUTE, readiness
from herder.rules.plans import Delete, Document, Event

# How long a Node has to be missing before its pods are removed. Somebody may be about to make it anew.
QUARANTINE = 40.0
FINISHED = ("Succeeded", "Failed")


class PodPlan(msgspec.Struct, frozen=True):
    # Conditions to write, by type, before anything else.
    conditions: tuple[Document, ...] = ()
    delete: Delete | None = None
    # Nothing is left of its node: to be asked of the API server itself before the pod is removed.
    orphaned: bool = False
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def troubles(node: Node) -> bool:
    """Whether anything has to be decided about its pods."""
    return readiness(node) in ("False", "Unknown") or any(one.effect == NO_EXECUTE for one in node.spec.taints)


def plan_pod(pod: Pod, node: Node | None, seen_for: float, now: float) -> PodPlan:
    """`node` is the one that it is bound to, None where there is none. `seen_for`: how long we have known of this trouble."""
    if node is None:
        return _without_node(pod, seen_for)
    if pod.being_deleted and fenced(node):
        return PodPlan(delete=Delete(pod.name, pod.uid, 0))
    if pod.being_deleted or pod.status.phase in FINISHED:
        return PodPlan()
    left = _time_left(pod, [one for one in node.spec.taints if one.effect == NO_EXECUTE], seen_for, now)
    if left is not None and left <= 0:
        told = Event("Normal", reasons.TAINT_MANAGER_EVICTION, f"Marking for deletion Pod {pod.namespace}/{pod.name}")
        return PodPlan((_disrupted(pod, now),), Delete(pod.name, pod.uid), events=(told,))
    ready = _ready(pod)
    if readiness(node) in ("False", "Unknown") and ready is not None and ready["status"] == "True":
        event = Event("Warning", reasons.NODE_NOT_READY, "Node is not ready")
        changed = {**ready, "status": "False", "lastTransitionTime": timestamp(now)}
        return PodPlan((changed,), events=(event,), next_look=left)
    return PodPlan(next_look=left)


def _without_node(pod: Pod, seen_for: float) -> PodPlan:
    if seen_for < QUARANTINE:
        return PodPlan(next_look=QUARANTINE - seen_for)
    return PodPlan(delete=Delete(pod.name, pod.uid, 0), orphaned=True)


def _time_left(pod: Pod, taints: list[Taint], seen_for: float, now: float) -> float | None:
    """Until it has to leave; None where it may stay for as long as it likes. The toleration with the least patience counts."""
    if not taints:
        return None
    patience: list[float] = []
    for taint in taints:
        tolerated = [one for one in pod.spec.tolerations if tolerates(one, taint)]
        if not tolerated:
            return 0.0
        spent = _spent(pod, taint, seen_for, now)
        # Of several that tolerate it the first counts, as in Kubernetes.
        if (seconds := tolerated[0].toleration_seconds) is not None:
            patience.append(max(seconds, 0) - spent)
    return min(patience, default=None)


def _spent(pod: Pod, taint: Taint, seen_for: float, now: float) -> float:
    """How long the pod has borne with the taint already. Where nobody wrote down since when, since we have known of it."""
    if taint.time_added is None:
        return seen_for
    return max(0.0, now - max(taint.time_added, _bound_at(pod) or taint.time_added).timestamp())


def _bound_at(pod: Pod) -> datetime.datetime | None:
    found = next((one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "True"), None)
    return found.last_transition_time if found is not None else pod.metadata.creation_timestamp


def _ready(pod: Pod) -> Document | None:
    found = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    if found is None:
        return None
    said = {"reason": found.reason, "message": found.message}
    return {"type": "Ready", "status": found.status, **{name: text for name, text in said.items() if text}}


def _disrupted(pod: Pod, now: float) -> Document:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reasons.DELETION_BY_TAINT_MANAGER,
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": timestamp(now),
    }
