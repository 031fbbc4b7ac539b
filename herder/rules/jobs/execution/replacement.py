"""Who takes the place of the pod that was evicted, and whether anybody is to."""

from __future__ import annotations

from herder.api import reasons
from herder.api.core import Pod
from herder.rules.jobs.execution.eviction import pod_name
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import status_of
from herder.rules.plans import Document, condition
from herder.rules.reservations.room import allocates_once


def replacement_of(snapshot: JobSnapshot) -> Pod | None:
    """The pod that took the reservation. Of one that several may take, the first that came after the eviction."""
    known = status_of(snapshot.job).pod_ref
    others = [pod for pod in snapshot.takers if pod.uid != status_of(snapshot.job).pod_uid]
    if known is not None and known.uid:
        return next((pod for pod in others if pod.uid == known.uid), None)
    if snapshot.reservation is None or allocates_once(snapshot.reservation):
        return others[0] if others else None
    return next((pod for pod in others if _came_after(snapshot, pod) and _is_like(snapshot, pod)), None)


def why_none_comes(snapshot: JobSnapshot) -> str:
    """Why no replacement is due any more; empty where one is, or nobody knows. Asked when the old pod is gone."""
    job, status = snapshot.job, status_of(snapshot.job)
    if status.pod_ref is not None:
        return f"pod {status.pod_ref.namespace}/{status.pod_ref.name}, which took the room, was gone before it was ready"
    owner = status.controller_ref
    if owner is None or snapshot.pod is not None:
        return ""
    named = f"{owner.kind} {owner.name}"
    if snapshot.controller_gone:
        return f"{named} is gone, and nobody makes another pod in the place of {pod_name(job)}"
    wanted = snapshot.wanted_replicas
    # In the place of those whom other jobs are about to evict others will come: replacements take each other's room.
    live = [pod for pod in snapshot.siblings if not pod.being_deleted and pod.uid not in snapshot.leaving]
    if wanted is None or len(live) < wanted or any(not pod.spec.node_name for pod in live):
        return ""
    if wanted == 0:
        return f"{named} was scaled to zero: no pod takes the place of {pod_name(job)}"
    return f"{named} wants {wanted} pods and has them: none of them took the room that was held"


def waits_for_place(snapshot: JobSnapshot) -> Pod | None:
    """A pod of the same controller that has no node, and that no other job waits for: it would take the room at once."""
    waiting = [pod for pod in snapshot.siblings if not pod.spec.node_name and not pod.being_deleted]
    return waiting[0] if len(waiting) > snapshot.replacements_due else None


def bound_conditions(snapshot: JobSnapshot, replacement: Pod) -> list[Document]:
    conditions = [
        condition(reasons.POD_SCHEDULED, True, reasons.POD_SCHEDULED, f"on node {replacement.spec.node_name}"),
        condition(reasons.POD_BOUND_RESERVATION, True, reasons.POD_BOUND_RESERVATION),
    ]
    if says_it_is_taken(snapshot, replacement):
        conditions.append(condition(reasons.RESERVATION_BOUND, True, reasons.RESERVATION_BOUND))
    return conditions


def says_it_is_taken(snapshot: JobSnapshot, replacement: Pod) -> bool:
    """One that is gone by now has nothing more to say."""
    reservation = snapshot.reservation
    if reservation is None:
        return True
    owners = reservation.status.current_owners or ()
    return any(owner.uid == replacement.uid for owner in owners)


def reference_to(pod: Pod) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def _came_after(snapshot: JobSnapshot, pod: Pod) -> bool:
    """Not who came between the beginning of the job and that: a scale-up may have taken a part of the room meanwhile."""
    status = status_of(snapshot.job)
    when, born = status.disruption_time or status.start_time, pod.metadata.creation_timestamp
    # Times are whole seconds: the same one may be after.
    return when is None or born is None or born >= when


def _is_like(snapshot: JobSnapshot, pod: Pod) -> bool:
    owner = status_of(snapshot.job).controller_ref
    return owner is None or pod.controller_uid == owner.uid
