"""Who goes first (seed 004, "Sort PodMigrationJob"): the first that tells two jobs apart decides. Less is earlier. One more is a
function, and a line."""

from __future__ import annotations

from collections.abc import Callable

from herder.rules.jobs.arbitration.snapshot import Candidate, CandidatePod

QOS_ORDER = {"LSE": 0, "LSR": 1, "LS": 2, "BE": 3}
# A job, its pod, and how many replicas of its workload migrate now.
Sorter = Callable[[Candidate, CandidatePod, int], float]
SortKey = tuple[tuple[float, ...], str]


def higher_qos(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return QOS_ORDER.get(pod.qos, len(QOS_ORDER))


def higher_priority(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return -pod.priority


def lower_eviction_cost(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return pod.eviction_cost


def higher_migration_priority(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return -job.migration_priority


def fewer_failures(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return job.failures


def fewer_deschedulings(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return job.deschedulings


def fewer_migrating(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return migrating


def older(job: Candidate, pod: CandidatePod, migrating: int) -> float:
    return job.created


SORTERS: tuple[Sorter, ...] = (
    higher_qos,
    higher_priority,
    lower_eviction_cost,
    higher_migration_priority,
    fewer_failures,
    fewer_deschedulings,
    fewer_migrating,
    older,
)


def sort_key(job: Candidate, pod: CandidatePod, migrating: int) -> SortKey:
    """By name in the end: the same jobs have the same order, whoever leads."""
    return tuple(sorter(job, pod, migrating) for sorter in SORTERS), job.name
