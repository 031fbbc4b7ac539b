"""One pass: a snapshot in; who is admitted, who waits and why, and who is refused and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from herder.api import reasons
from herder.rules.jobs.arbitration.filters import why_never
from herder.rules.jobs.arbitration.limits import Limit, Wait, limits_of
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, Candidate, CandidatePod, Migrating, WorkloadId
from herder.rules.jobs.arbitration.sorters import sort_key


class Refused(msgspec.Struct, frozen=True):
    reason: str
    message: str


class Arbitration(msgspec.Struct, frozen=True):
    # Names of jobs, in the order in which they may begin.
    admitted: tuple[str, ...] = ()
    # In the order in which they would be next.
    waiting: Mapping[str, Wait] = msgspec.field(default_factory=dict[str, Wait])
    refused: Mapping[str, Refused] = msgspec.field(default_factory=dict[str, Refused])


def arbitrate(snapshot: ArbitrationSnapshot) -> Arbitration:
    held, refused, candidates = _filtered(snapshot)
    limits = limits_of(snapshot)
    admitted: list[str] = []
    waiting: dict[str, Wait] = {}
    for job, pod in _sorted(snapshot, candidates):
        wait = _held_by(limits, pod)
        if wait is not None:
            waiting[job.name] = wait
            continue
        admitted.append(job.name)
        # Counted before it is written: what comes after it stands on it.
        for limit in limits:
            limit.count(_as_migrating(job, pod))
    return Arbitration(tuple(admitted), waiting | held, refused)


def _filtered(
    snapshot: ArbitrationSnapshot,
) -> tuple[dict[str, Wait], dict[str, Refused], list[tuple[Candidate, CandidatePod]]]:
    held: dict[str, Wait] = {}
    refused: dict[str, Refused] = {}
    left: list[tuple[Candidate, CandidatePod]] = []
    for job in snapshot.pending:
        if job.paused:
            held[job.name] = Wait(reasons.PAUSED, "spec.paused is true")
        elif not snapshot.config.enabled:
            held[job.name] = Wait(reasons.DISABLED, "enabled of jobs.yaml is false")
        elif job.pod is None:
            held[job.name] = Wait(reasons.WAITING_FOR_POD, "the pod could not be read")
        elif why := why_never(job.pod, snapshot.workloads.get(job.pod.workload) if job.pod.workload else None, snapshot.config):
            refused[job.name] = Refused(reasons.FORBIDDEN_MIGRATE_POD, why)
        else:
            left.append((job, job.pod))
    return held, refused, left


def _sorted(
    snapshot: ArbitrationSnapshot, candidates: list[tuple[Candidate, CandidatePod]]
) -> list[tuple[Candidate, CandidatePod]]:
    migrating: Counter[WorkloadId] = Counter(one.workload for one in snapshot.migrating if one.workload is not None)
    return sorted(candidates, key=lambda one: sort_key(one[0], one[1], migrating[one[1].workload] if one[1].workload else 0))


def _held_by(limits: list[Limit], pod: CandidatePod) -> Wait | None:
    for limit in limits:
        wait = limit.holds(pod)
        if wait is not None:
            return wait
    return None


def _as_migrating(job: Candidate, pod: CandidatePod) -> Migrating:
    return Migrating(
        job=job.name, namespace=pod.namespace, pod=pod.name, uid=pod.uid, node=pod.node, workload=pod.workload, ready=pod.ready
    )
