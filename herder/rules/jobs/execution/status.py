"""The status of a job. It is whole each time, and written only over the very state that it was made from: arbitration, which admits
a job, and its controller, which carries it out, cannot undo each other's word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from herder.api import reasons
from herder.api.core import Pod
from herder.api.duration import format_seconds
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobPhase, PodMigrationJobStatus
from herder.api.meta import Condition
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.strategy import mode_of, strategy_name
from herder.rules.jobs.workload import Controller, Workload
from herder.rules.plans import Document, find, moment, plain, since, text_of, without_nothing

# In the order in which they are reached.
CONDITIONS = (
    reasons.RESERVATION_CREATED,
    reasons.RESERVATION_SCHEDULED,
    reasons.EVICTION,
    reasons.POD_SCHEDULED,
    reasons.POD_BOUND_RESERVATION,
    reasons.RESERVATION_BOUND,
)
FINISHED: tuple[JobPhase, ...] = ("Succeed", "Failed", "Aborted")
NO_STATUS = PodMigrationJobStatus()


def status_of(job: PodMigrationJob) -> PodMigrationJobStatus:
    return job.status if job.status is not None else NO_STATUS


def phase_of(job: PodMigrationJob) -> JobPhase:
    return status_of(job).phase or "Pending"


def is_over(job: PodMigrationJob) -> bool:
    return phase_of(job) in FINISHED


def waiting_status(job: PodMigrationJob, reason: str, message: str, now: float, *, pod_uid: str = "") -> Document:
    """Held by what `reason` says, since then: the same reason keeps its time, whatever its sentence says by now. `pod_uid`: of the
    pod that was seen, which from the first look on is the one that is meant."""
    before = status_of(job)
    same = before.phase == "Pending" and before.reason == reason and before.waiting_since is not None
    since_when = before.waiting_since if same else None
    waiting = text_of(since_when or moment(now))
    return changed_status(
        job,
        now,
        phase="Pending",
        reason=reason,
        message=message,
        podUID=before.pod_uid or pod_uid or None,
        waitingSince=waiting,
        pendingSince=_pending_since(job, reason, now),
        status=None,
        startTime=None,
        disruptionTime=None,
        conditions=(),
        # Of a run that was given up: the next one has its own.
        podRef=None,
        nodeName=None,
        migrationRef=None,
    )


def pending_since(job: PodMigrationJob) -> datetime | None:
    """Since when it waits for its turn; None while it is paused, or until it is said what it waits for now."""
    status = status_of(job)
    if job.spec.paused or status.reason == reasons.PAUSED:
        return None
    return status.pending_since or job.metadata.creation_timestamp


def _pending_since(job: PodMigrationJob, reason: str, now: float) -> str | None:
    """A job that ran, or was paused, waits anew."""
    if reason == reasons.PAUSED:
        return None
    before = status_of(job)
    waited = before.phase is None or (before.phase == "Pending" and before.reason != reasons.PAUSED)
    return text_of((pending_since(job) if waited else None) or moment(now))


def admitted_status(
    job: PodMigrationJob, pod: Pod, workload: Workload | None, config: JobsConfig, now: float, *, machine: bool, surges: bool
) -> Document:
    """What the rest of its life goes by, even where the pod, its owner or the configuration are others by then."""
    ttl = job.spec.ttl if job.spec.ttl is not None else format_seconds(config.default_job_ttl)
    return changed_status(
        job,
        now,
        phase="Running",
        reason=None,
        message=None,
        status=None,
        conditions=(),
        waitingSince=None,
        pendingSince=None,
        startTime=text_of(moment(now)),
        mode=mode_of(job, config),
        ttl=ttl,
        strategy=strategy_name(job, pod, config, machine=machine, surges=surges),
        podUID=pod.uid,
        sourceNode=pod.spec.node_name or None,
        controllerRef=_controller(pod.namespace, workload.controller) if workload is not None else None,
        workloadRef=_workload(workload) if workload is not None else None,
    )


def sent_back_status(job: PodMigrationJob, reason: str, message: str, now: float) -> Document:
    """Pending again: the time that it ran counts, that which it waits does not."""
    ran = running_seconds(job, now)
    document = waiting_status(job, reason, message, now)
    return {**document, "runningSeconds": int(ran)} if ran >= 1 else document


def finished_status(
    job: PodMigrationJob,
    phase: JobPhase,
    reason: str | None,
    message: str | None,
    now: float,
    conditions: Sequence[Document] | None = None,
    **fields: Any,
) -> Document:
    ended = text_of(moment(now))
    status = changed_status(job, now, conditions=conditions, **fields)
    ending = {"phase": phase, "reason": reason, "message": message, "waitingSince": None, "pendingSince": None}
    return without_nothing({**status, **ending, "completionTime": ended})


def running_seconds(job: PodMigrationJob, now: float) -> float:
    """How long it has run in all, pauses left out. A clock that was set back takes nothing away."""
    status = status_of(job)
    this_time = now - status.start_time.timestamp() if status.start_time is not None and status.phase == "Running" else 0.0
    return (status.running_seconds or 0) + max(0.0, this_time)


def changed_status(job: PodMigrationJob, now: float, *, conditions: Sequence[Document] | None = None, **fields: Any) -> Document:
    """As it is, but for these fields (by their names in the API; None takes one away) and conditions. Conditions that are not
    named stay; an empty tuple takes all of them away."""
    before = status_of(job)
    known = [] if conditions == () else [_kept(one) for one in before.conditions or () if one.type in CONDITIONS]
    document = {**(plain(before) or {}), **fields, "observedGeneration": job.metadata.generation}
    merged = {one["type"]: one for one in (*known, *(conditions or ()))}
    ordered = [merged[kind] for kind in CONDITIONS if kind in merged]
    document["conditions"] = since(ordered, before.conditions, now) or None
    return without_nothing(document)


def has(job: PodMigrationJob, kind: str, status: str = "True", reason: str = "") -> bool:
    """Whether the job has this condition with this status, and with this reason where one is given."""
    found = find(status_of(job).conditions, kind)
    return found is not None and found.status == status and (not reason or found.reason == reason)


def _kept(one: Condition) -> Document:
    return {"type": one.type, "status": one.status, "reason": one.reason or "", "message": one.message or ""}


def _controller(namespace: str, owner: Controller) -> Document:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": namespace,
        "name": owner.name,
        "uid": owner.uid,
    }


def _workload(workload: Workload) -> Document:
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "uid": workload.uid,
    }
