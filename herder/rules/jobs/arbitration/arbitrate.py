"""One pass: a snapshot in; who is admitted, who waits and why, and who is refused and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from herder.api import reasons
from herder.rules.jobs.arbitration.filters import why_never
from herder.rules.jobs.arbitration.limits import Limit, Wait, limits_of
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, Candidate, CandidatePod, Migrating, WorkloadId
from herder.rules.jobs.arbitration.sorters import SortKey, sort_key
from herder.rules.jobs.budgets import SEVERAL_BUDGETS, are_several


class Refused(msgspec.Struct, frozen=True):
    reason: str
    message: str


class Arbitration(msgspec.Struct, frozen=True):
    # Names of jobs, in the order in which they may begin.
    admitted: tuple[str, ...] = ()
    # In the order in which they would be next.
    waiting: Mapping[str, Wait] = msgspec.field(default_factory=dict[str, Wait])
    refused: Mapping[str, Refused] = msgspec.field(default_factory=dict[str, Refused])


def arbitrate(snapshot: ArbitrationSnapshot, order: Callable[[str], SortKey] | None = None) -> Arbitration:
    """`order`: by the name of a job; that of the sorters where none is given."""
    held, refused, candidates = _filtered(snapshot)
    limits = limits_of(snapshot)
    admitted: list[str] = []
    waiting: dict[str, Wait] = {}
    for job, pod in _sorted(snapshot, candidates, order):
        wait = _held_by(limits, pod)
        if wait is not None:
            waiting[job.name] = wait
            continue
        admitted.append(job.name)
        # Counted before it is written: what comes after it stands on it.
        counted = as_migrating(job, pod)
        for limit in limits:
            limit.count(counted)
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
        elif job.unjudged:
            held[job.name] = Wait(reasons.WAITING_FOR_ADMISSION, job.unjudged)
        elif job.forbidden:
            refused[job.name] = Refused(reasons.FORBIDDEN_MIGRATE_POD, job.forbidden)
        elif job.pod is None:
            held[job.name] = Wait(reasons.WAITING_FOR_POD, "the pod could not be read")
        elif (never := _refused(snapshot, job.pod)) is not None:
            refused[job.name] = never
        else:
            left.append((job, job.pod))
    return held, refused, left


def _refused(snapshot: ArbitrationSnapshot, pod: CandidatePod) -> Refused | None:
    why = why_never(pod, snapshot.workloads.get(pod.workload) if pod.workload else None, snapshot.config)
    if why:
        # One that goes is as good as gone: how a job ends must not depend on which of the two was seen first.
        return Refused(reasons.MISSING_POD if pod.terminating else reasons.FORBIDDEN_MIGRATE_POD, why)
    # Time does not change it: no eviction of such a pod is ever answered.
    return Refused(reasons.FAILED_EVICT, SEVERAL_BUDGETS) if are_several(snapshot.budgets_of(pod.uid).budgets) else None


def _sorted(
    snapshot: ArbitrationSnapshot, candidates: list[tuple[Candidate, CandidatePod]], order: Callable[[str], SortKey] | None
) -> list[tuple[Candidate, CandidatePod]]:
    if order is not None:
        return sorted(candidates, key=lambda one: order(one[0].name))
    migrating: Counter[WorkloadId] = Counter(one.workload for one in snapshot.migrating if one.workload is not None)
    return sorted(candidates, key=lambda one: sort_key(one[0], one[1], migrating[one[1].workload] if one[1].workload else 0))


def _held_by(limits: list[Limit], pod: CandidatePod) -> Wait | None:
    for limit in limits:
        wait = limit.holds(pod)
        if wait is not None:
            return wait
    return None


def as_migrating(job: Candidate, pod: CandidatePod) -> Migrating:
    return Migrating(
        job=job.name, namespace=pod.namespace, pod=pod.name, uid=pod.uid, node=pod.node, workload=pod.workload, ready=pod.ready
    )
