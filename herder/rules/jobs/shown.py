"""What `herder job list` and `herder job status` say of a job: how far it is, what it waits for, and what one can do."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import msgspec

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.api.meta import Condition, ObjectReference
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.eviction import is_evicted
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import CONDITIONS, is_over, phase_of, running_seconds, status_of
from herder.rules.plans import find, text_of

GONE = "it is not there any more"
NOBODY_LOOKED = "no controller has looked at it yet"
# What a job that runs is about to do, where it says nothing itself.
_BEGINS = {
    "Reservation": "it is about to reserve room",
    "Surge": "it is about to reserve room for the replacement, which comes first",
    "Placement": "it is about to reserve room for the pod, which has no node yet",
    "Eviction": "it is about to evict the pod",
    "LiveMigration": "its live migration is about to be made",
}


class JobRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    phase: str
    # Of the pod that is moved.
    namespace: str
    pod: str
    # Empty as long as it is not known.
    source_node: str
    target_node: str
    reason: str
    paused: bool
    created: str


class JobList(msgspec.Struct, frozen=True):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    jobs: tuple[JobRow, ...]


class ConditionRow(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str
    since: str
    message: str


class ReservationRow(msgspec.Struct, frozen=True):
    name: str
    # Empty where it is not there, or may not be read.
    phase: str
    node: str
    # Whether pods may take it now.
    open: bool
    message: str


class JobReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    name: str
    phase: str
    namespace: str
    pod: str
    pod_uid: str = msgspec.field(name="podUID")
    # What the pod is a replica of, as KIND NAMESPACE/NAME; empty as long as nobody looked.
    workload: str
    strategy: str
    mode: str
    paused: bool
    source_node: str
    target_node: str
    # Why it waits or how it ended.
    reason: str
    message: str
    # What it waits for; empty where it is over.
    waits_for: str
    since: str
    ttl: str
    running_seconds: int
    created: str
    started: str
    completed: str
    conditions: tuple[ConditionRow, ...]
    reservation: ReservationRow | None
    # Namespace and name.
    migration: str
    replacement: str
    # What one can do, as sentences.
    can: tuple[str, ...]


def pod_text(job: PodMigrationJob) -> str:
    return f"{job.spec.pod_ref.namespace}/{job.spec.pod_ref.name}"


def meant_pod(job: PodMigrationJob, found: Pod | None) -> Pod | None:
    """What has the pod's name now, where it is the very pod that is moved."""
    uid = status_of(job).pod_uid or job.spec.pod_ref.uid
    return found if found is not None and uid in (None, "", found.uid) else None


def has_let_go(job: PodMigrationJob, pod: Pod | None) -> bool:
    """Whether it has gone too far to be undone, as far as can be told from outside. `pod`: the very pod that is moved."""
    return is_evicted(JobSnapshot(job=job, config=JobsConfig(), pod=pod))


def reservation_of(job: PodMigrationJob) -> str:
    """The name of the one that it uses; empty where it has none yet."""
    options = job.spec.reservation_options
    reference = options.reservation_ref if options is not None else None
    return (reference.name if reference is not None else None) or ""


def target_of(job: PodMigrationJob, reservation: ReservationView | None) -> str:
    """Where the replacement is; before that, where room is held for it."""
    held = (reservation.status.node_name or "") if reservation is not None and not is_over(job) else ""
    return status_of(job).node_name or held


def job_row(job: PodMigrationJob, nodes: Mapping[str, str], reservations: Mapping[str, ReservationView]) -> JobRow:
    """`nodes`: where pods are, as namespace/name; `reservations` by name. As far as they could be read."""
    status = status_of(job)
    reservation = reservations.get(reservation_of(job))
    waits = phase_of(job) == "Pending"
    return JobRow(
        name=job.name,
        phase=phase_of(job),
        namespace=job.spec.pod_ref.namespace,
        pod=job.spec.pod_ref.name,
        source_node=status.source_node or (nodes.get(pod_text(job), "") if waits else ""),
        target_node=target_of(job, reservation),
        reason=status.reason or _step(job),
        paused=bool(job.spec.paused),
        created=_text(job.metadata.creation_timestamp),
    )


def waits_for(job: PodMigrationJob) -> tuple[str, str]:
    """What it waits for, and since when; nothing where it is over."""
    status = status_of(job)
    if is_over(job):
        return "", ""
    if status.phase is None:
        return NOBODY_LOOKED, _text(job.metadata.creation_timestamp)
    if status.phase == "Pending":
        return status.message or status.reason or "its turn", _text(status.waiting_since)
    step = unmet(job)
    text = (step.message if step is not None else None) or status.message or _BEGINS.get(status.strategy or "", "its next step")
    since = step.last_transition_time if step is not None else _last_change(job)
    return text, _text(since or status.start_time)


def unmet(job: PodMigrationJob) -> Condition | None:
    """The first condition that does not hold yet."""
    conditions = status_of(job).conditions
    found = (find(conditions, kind) for kind in CONDITIONS)
    return next((one for one in found if one is not None and one.status != "True"), None)


def job_report(
    job: PodMigrationJob, pod: Pod | None, reservation: ReservationView | None, now: float, why_none: str = GONE
) -> JobReport:
    """`pod`: what has the pod's name now. `why_none`: what is said of a reservation that the job names and that was not found."""
    status = status_of(job)
    waiting, since = waits_for(job)
    return JobReport(
        name=job.name,
        phase=phase_of(job),
        namespace=job.spec.pod_ref.namespace,
        pod=job.spec.pod_ref.name,
        pod_uid=status.pod_uid or job.spec.pod_ref.uid or "",
        workload=_owner(status.workload_ref),
        strategy=status.strategy or "",
        mode=status.mode or job.spec.mode or "",
        paused=bool(job.spec.paused),
        source_node=status.source_node or (pod.spec.node_name if pod is not None and not is_over(job) else ""),
        target_node=target_of(job, reservation),
        reason=status.reason or "",
        message=status.message or "",
        waits_for=waiting,
        since=since,
        ttl=status.ttl or job.spec.ttl or "",
        running_seconds=int(_ran(job, now)),
        created=_text(job.metadata.creation_timestamp),
        started=_text(status.start_time),
        completed=_text(status.completion_time),
        conditions=tuple(_condition(one) for kind in CONDITIONS if (one := find(status.conditions, kind)) is not None),
        reservation=_reservation(job, reservation, why_none),
        migration=_name(status.migration_ref),
        replacement=_name(status.pod_ref),
        can=what_one_can_do(job, meant_pod(job, pod)),
    )


def what_one_can_do(job: PodMigrationJob, pod: Pod | None) -> tuple[str, ...]:
    name, phase = job.name, phase_of(job)
    if is_over(job):
        record = f"`kubectl delete pmj {name}` removes its record, which goes by itself later"
        again = f"`herder evacuate {job.spec.pod_ref.name} -n {job.spec.pod_ref.namespace}` tries again"
        return (record,) if phase == "Succeed" else (again, record)
    if has_let_go(job, pod):
        return (f"`herder job abort {name}` ends the job; the replacement keeps its room",)
    explains = (f"`herder explain job {name}` says which limit holds it, and who is ahead",) if phase == "Pending" else ()
    if job.spec.paused:
        return (f"`herder job resume {name}` lets it go on", f"`herder job abort {name}` ends it; the pod stays")
    held = "gives its room back and holds it" if phase == "Running" else "holds it"
    return (*explains, f"`herder job pause {name}` {held}", f"`herder job abort {name}` ends it; the pod stays where it is")


def _step(job: PodMigrationJob) -> str:
    """Of a job that runs: the first thing that is not so yet."""
    step = unmet(job) if phase_of(job) == "Running" else None
    return (step.reason or step.type) if step is not None else ""


def _last_change(job: PodMigrationJob) -> datetime.datetime | None:
    times = [one.last_transition_time for one in status_of(job).conditions or () if one.last_transition_time is not None]
    return max(times, default=None)


def _ran(job: PodMigrationJob, now: float) -> float:
    status = status_of(job)
    if is_over(job) and status.start_time is not None and status.completion_time is not None:
        return (status.running_seconds or 0) + max(0.0, (status.completion_time - status.start_time).total_seconds())
    return running_seconds(job, now)


def _condition(one: Condition) -> ConditionRow:
    return ConditionRow(one.type, one.status, one.reason or "", _text(one.last_transition_time), one.message or "")


def _reservation(job: PodMigrationJob, found: ReservationView | None, why_none: str) -> ReservationRow | None:
    name = reservation_of(job)
    if not name:
        return None
    if found is None:
        # One that was given back is made again when the job runs again.
        if phase_of(job) == "Pending":
            return None
        return ReservationRow(name, "", "", False, why_none)
    status = found.status
    is_open = status.phase == "Available" and not found.spec.unschedulable
    return ReservationRow(name, status.phase or "Pending", status.node_name or "", is_open, status.message or "")


def _owner(reference: ObjectReference | None) -> str:
    return f"{reference.kind} {_name(reference)}" if reference is not None else ""


def _name(reference: ObjectReference | None) -> str:
    if reference is None or not reference.name:
        return ""
    return f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name


def _text(time: datetime.datetime | None) -> str:
    return text_of(time) if time is not None else ""
