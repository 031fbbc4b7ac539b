"""How often jobs of a pod failed, and how often pods of a workload were moved: counted from the finished jobs that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from herder.api.kinds import PodMigrationJob
from herder.kube.cache import Cache, Change, Stored, view_of
from herder.rules.jobs.arbitration.history import descheduled, failed_pod
from herder.rules.jobs.arbitration.snapshot import WorkloadId
from herder.rules.jobs.execution.status import is_over

Told = tuple[str, WorkloadId | None]
Counted = TypeVar("Counted", str, WorkloadId)
_NOTHING: Told = ("", None)


class History:
    """Follows the cache. `changed` is told whose numbers are others: the uid of a pod, a workload."""

    def __init__(self, jobs: Cache[PodMigrationJob], changed: Callable[[str, WorkloadId | None], None]) -> None:
        self._changed = changed
        self._failures: Counter[str] = Counter()
        self._deschedulings: Counter[WorkloadId] = Counter()
        jobs.subscribe(self._job_changed)

    def failures(self, pod_uid: str) -> int:
        return self._failures[pod_uid]

    def deschedulings(self, workload: WorkloadId | None) -> int:
        return self._deschedulings[workload] if workload is not None else 0

    def _job_changed(self, change: Change[PodMigrationJob]) -> None:
        before, after = _told(change.old), _told(change.new)
        if before == after:
            return
        self._add(before, -1)
        self._add(after, 1)
        for one in (before, after):
            if one != _NOTHING:
                self._changed(*one)

    def _add(self, told: Told, times: int) -> None:
        pod, workload = told
        if pod:
            _count(self._failures, pod, times)
        if workload is not None:
            _count(self._deschedulings, workload, times)


def _count(counter: Counter[Counted], what: Counted, times: int) -> None:
    counter[what] += times
    if not counter[what]:
        del counter[what]


def _told(stored: Stored[PodMigrationJob] | None) -> Told:
    job = view_of(stored)
    return (failed_pod(job), descheduled(job)) if job is not None and is_over(job) else _NOTHING
