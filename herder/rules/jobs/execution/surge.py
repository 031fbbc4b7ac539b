"""Replacement first, for a pod of a Deployment: its ReplicaSet lets it go and makes another one, on room that was reserved for it,
and only when the other one is ready the old one is evicted. Until then it can be given back at any time.

The pod serves all the while: it keeps every label but `pod-template-hash`. Giving back is safe whenever it happens: of one pod too
many the ReplicaSet ends one that is not ready before one that is, and where both are ready either may go.
"""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import labels, reasons
from herder.api.core import Deployment, Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution import room
from herder.rules.jobs.execution.eviction import evict_of, evicting, has_begun, is_evicted, pod_name, why_not_there
from herder.rules.jobs.execution.outcome import fail, show
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.pod_release import is_marked, is_released, release_patch, return_patch
from herder.rules.jobs.execution.replacement import (
    bound_conditions,
    reference_to,
    replacement_of,
    waits_for_place,
    why_none_comes,
)
from herder.rules.jobs.execution.reservation_first import RESERVATION_FIRST, reserve
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import has, phase_of, status_of
from herder.rules.jobs.execution.strategy import Strategy, mode_of
from herder.rules.jobs.workload import REPLICA_SET, controller_named
from herder.rules.plans import Document, Event, condition, moment, text_of
from herder.rules.reservations.lifecycle import is_finished
from herder.rules.workloads.pods import available_in
from herder.rules.workloads.rolling import limits_of
from herder.rules.workloads.templates import TEMPLATE_HASH

# Until other jobs of the workload are looked at again: not all that they do is told to who waits for them.
OTHERS_EVERY: Final = 10.0

# --- whether it is asked for, and can be done ------------------------------------------------------------------------------------


def surges(job: PodMigrationJob, pod: Pod, deployment: Deployment | None) -> bool:
    """Whether the pod is to be replaced before it goes. `deployment`: its workload, where that is one."""
    return asks_for_surge(job, deployment) and not _why_impossible(pod, deployment)


def why_no_surge(job: PodMigrationJob, pod: Pod, deployment: Deployment | None) -> str:
    """A sentence for people where it is asked for and cannot be done; else empty."""
    why = _why_impossible(pod, deployment) if asks_for_surge(job, deployment) else ""
    return f"annotation {labels.SURGE} asks for the replacement to come first, but {why}: the pod goes first" if why else ""


def asks_for_surge(job: PodMigrationJob, deployment: Deployment | None) -> bool:
    """The job's own word counts before that of its Deployment, also where it says no."""
    said = job.annotations.get(labels.SURGE)
    if said is None and deployment is not None:
        said = deployment.annotations.get(labels.SURGE)
    return said == "true"


def needs_no_budget_yet(job: PodMigrationJob, pod: Pod, deployment: Deployment | None, config: JobsConfig) -> bool:
    """Of a job that waits or runs: whether it takes nobody away before another one is ready. Budgets, of which a lone replica has
    none left, are asked when it is."""
    if phase_of(job) == "Running":
        return status_of(job).strategy == "Surge" and not is_released(job, pod)
    return mode_of(job, config) == "ReservationFirst" and surges(job, pod, deployment)


def _why_impossible(pod: Pod, deployment: Deployment | None) -> str:
    name = f"{pod.namespace}/{pod.name}"
    if deployment is None or deployment.being_deleted:
        return f"pod {name} is not of a Deployment that stays"
    if pod.controller is None or controller_named(pod.controller).group_kind != REPLICA_SET or TEMPLATE_HASH not in pod.labels:
        return f"pod {name} is not kept by a ReplicaSet that a Deployment has made"
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    if limits_of(deployment.spec.strategy, wanted).surge == 0:
        return f"strategy.rollingUpdate.maxSurge of Deployment {deployment.name} allows no pod beyond its {wanted}"
    return ""


# --- how it goes -----------------------------------------------------------------------------------------------------------------


class _Surge:
    def committed(self, snapshot: JobSnapshot) -> bool:
        """Also where somebody else ended the pod once it was let go: the replacement that was made for it needs the room."""
        return is_evicted(snapshot)

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        if is_evicted(snapshot):
            return RESERVATION_FIRST.advance(snapshot, now)
        gone = why_not_there(snapshot)
        if gone is not None:
            return fail(snapshot, *gone, now)
        pod = snapshot.pod
        assert pod is not None
        why = _why_lost(snapshot, pod)
        if why:
            return fail(snapshot, reasons.FORBIDDEN_MIGRATE_POD, why, now)
        if is_released(snapshot.job, pod):
            return _await_replacement(snapshot, pod, now)
        return reserve(snapshot, now) or _release(snapshot, pod, now)

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        pod = snapshot.pod
        patch = return_patch(snapshot, pod) if pod is not None else None
        patches = ((pod.name, pod.uid, patch),) if pod is not None and patch is not None else ()
        return JobPlan(patch_pods=patches, delete_reservation=room.release(snapshot))

    def settled(self, snapshot: JobSnapshot) -> bool:
        return RESERVATION_FIRST.settled(snapshot)

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        return True


SURGE: Strategy = _Surge()


def _why_lost(snapshot: JobSnapshot, pod: Pod) -> str:
    """Why the pod is not ours to let go or to evict any more; empty where it is."""
    owner, name = status_of(snapshot.job).controller_ref, pod_name(snapshot.job)
    kept = f"{owner.kind} {owner.name}" if owner is not None else "its controller"
    if pod.controller is not None and (owner is None or pod.controller_uid != owner.uid):
        return f"pod {name} was taken in by {pod.controller.kind} {pod.controller.name}, and is not of {kept} any more"
    if is_released(snapshot.job, pod):
        return ""
    if pod.controller is None or TEMPLATE_HASH not in pod.labels:
        return f"pod {name} was set apart from {kept} by somebody else"
    if is_marked(snapshot.job, pod):
        return f"pod {name} was given back to {kept} by somebody else before its replacement was ready"
    return ""


def _release(snapshot: JobSnapshot, pod: Pod, now: float) -> JobPlan:
    """That it may be let go from now on is durable before it is. The room is opened before: whoever comes finds it."""
    reservation = snapshot.reservation
    assert reservation is not None
    conditions, name = room.look_at_room(snapshot).conditions, pod_name(snapshot.job)
    if snapshot.would_adopt:
        said = f"pod {name} cannot be let go: {', '.join(snapshot.would_adopt)} would take it in, as its selector fits too"
        return fail(snapshot, reasons.FORBIDDEN_MIGRATE_POD, said, now, conditions=conditions)
    deployment = snapshot.deployment
    if deployment is None or deployment.being_deleted:
        # The pod would name it as its only owner, and be collected as garbage at once.
        said = f"pod {name} cannot be let go: its Deployment is gone, or is being deleted"
        return fail(snapshot, reasons.FORBIDDEN_MIGRATE_POD, said, now, conditions=conditions)
    said = _why_later(snapshot, deployment, reservation)
    if said:
        plan = show(snapshot, now, conditions=conditions, reason=reasons.WAITING_FOR_WORKLOAD_LIMIT, message=said)
        return msgspec.structs.replace(plan, next_look=OTHERS_EVERY)
    said = f"pod {name} is let go by its ReplicaSet, and serves until its replacement is ready"
    waits = condition(reasons.EVICTION, False, reasons.WAIT_FOR_REPLACEMENT, said)
    shown = show(
        snapshot,
        now,
        conditions=(*conditions, waits),
        reason=reasons.WAIT_FOR_REPLACEMENT,
        message=said,
        disruptionTime=text_of(moment(now)),
    )
    return JobPlan(
        # Also where the room was given: a job that is deleted from now on must give the pod back first.
        hold=labels.JOB_FINALIZER not in snapshot.job.finalizers,
        status=shown.status,
        events=(*shown.events, Event("Normal", reasons.WAIT_FOR_REPLACEMENT, said)),
        open_reservation=not room.is_open(reservation),
        patch_pods=((pod.name, pod.uid, release_patch(snapshot.job)),),
        releases=True,
    )


def _why_later(snapshot: JobSnapshot, deployment: Deployment, reservation: ReservationView) -> str:
    """Why the pod is not let go yet; empty where it may be."""
    rival = waits_for_place(snapshot)
    if rival is not None:
        where = f"on node {reservation.status.node_name}"
        return f"pod {rival.namespace}/{rival.name} waits for a node, and would take the room {where}"
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    most = limits_of(deployment.spec.strategy, wanted).surge
    if snapshot.surging_before < most:
        return ""
    beyond = f"maxSurge of Deployment {deployment.name} allows {most} beyond its {wanted}"
    return f"{snapshot.surging_before} of its pods are replaced before they go already, and {beyond}"


def _await_replacement(snapshot: JobSnapshot, pod: Pod, now: float) -> JobPlan:
    replacement = replacement_of(snapshot)
    if replacement is not None:
        return _await_ready(snapshot, pod, replacement, now)
    reservation, name = snapshot.reservation, pod_name(snapshot.job)
    why = why_none_comes(_without_pod(snapshot, pod))
    if why:
        return fail(snapshot, reasons.NO_REPLACEMENT, f"{why}; pod {name} is given back", now)
    if reservation is None or is_finished(reservation):
        said = f"Reservation {room.referred_to(snapshot.job)} was gone before the replacement took it; pod {name} is given back"
        return fail(snapshot, reasons.MISSING_RESERVATION, said, now)
    where = f"on node {reservation.status.node_name}" if reservation.status.node_name else "which has no node at the moment"
    said = f"the replacement of pod {name}, which serves until then, has not taken the room {where} yet"
    bound = condition(reasons.POD_BOUND_RESERVATION, False, reasons.WAIT_FOR_POD_BIND_RESERVATION, said)
    plan = show(snapshot, now, conditions=(_waiting(said), bound), reason=reasons.WAIT_FOR_REPLACEMENT, message=said)
    return msgspec.structs.replace(plan, open_reservation=not room.is_open(reservation))


def _await_ready(snapshot: JobSnapshot, pod: Pod, replacement: Pod, now: float) -> JobPlan:
    """Ready for as long as its ReplicaSet asks for. What is told to end, or has ended, will never be."""
    seconds = snapshot.replica_set.spec.min_ready_seconds if snapshot.replica_set is not None else 0
    wait = None if replacement.being_deleted else available_in(replacement, seconds, now)
    if wait == 0:
        return _evict(snapshot, pod, replacement, now)
    said = f"pod {replacement.namespace}/{replacement.name} on node {replacement.spec.node_name} is not ready yet"
    if wait is not None:
        said = f"{said[: -len(' yet')]} for minReadySeconds yet"
    said = f"{said}; pod {pod_name(snapshot.job)} serves until then"
    conditions = (_waiting(said), *bound_conditions(snapshot, replacement))
    plan = show(snapshot, now, conditions=conditions, reason=reasons.WAIT_FOR_REPLACEMENT, message=said, **_found(replacement))
    return msgspec.structs.replace(plan, next_look=wait)


def _evict(snapshot: JobSnapshot, pod: Pod, replacement: Pod, now: float) -> JobPlan:
    """What a try was told is kept: the next one says it anew, or ends it."""
    job, evict = snapshot.job, evict_of(snapshot, pod)
    if has_begun(job) and not has(job, reasons.EVICTION, "False", reasons.WAIT_FOR_REPLACEMENT):
        return JobPlan(evict=evict)
    said = f"pod {replacement.namespace}/{replacement.name} is ready on node {replacement.spec.node_name}"
    conditions = (evicting(), *bound_conditions(snapshot, replacement))
    message = f"{said}; pod {pod_name(job)} is evicted"
    shown = show(snapshot, now, conditions=conditions, reason=reasons.EVICTING, message=message, **_found(replacement))
    event = Event("Normal", reasons.EVICTING, f"{said}: evicting pod {pod_name(job)} from node {pod.spec.node_name}")
    return JobPlan(status=shown.status, events=(*shown.events, event), evict=evict)


def _waiting(said: str) -> Document:
    return condition(reasons.EVICTION, False, reasons.WAIT_FOR_REPLACEMENT, said)


def _found(replacement: Pod) -> Document:
    return {"podRef": reference_to(replacement), "nodeName": replacement.spec.node_name}


def _without_pod(snapshot: JobSnapshot, pod: Pod) -> JobSnapshot:
    """As for a pod that is gone: its ReplicaSet may not have let it go yet, and still name it among its own."""
    others = tuple(one for one in snapshot.siblings if one.uid != pod.uid)
    return msgspec.structs.replace(snapshot, pod=None, siblings=others)
