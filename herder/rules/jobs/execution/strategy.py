"""Which way a job goes, and the shape of a way. Which one is decided when the job is admitted, and written down: afterwards the pod
may be gone, and with it what would tell."""

from __future__ import annotations

from typing import Protocol

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobMode, JobStrategy
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot


class Strategy(Protocol):
    def committed(self, snapshot: JobSnapshot) -> bool:
        """Whether it has gone too far to be undone: the pod was evicted, the guest has been handed over."""
        ...

    def advance(self, snapshot: JobSnapshot, now: float) -> JobPlan:
        """The next step of a job that runs, is not paused and has time left."""
        ...

    def undo(self, snapshot: JobSnapshot) -> JobPlan:
        """Only writes: what it takes for everything to be as if the job had never run. Asked as long as it is not `committed`; safe
        to repeat, and nothing where there is nothing to undo."""
        ...

    def settled(self, snapshot: JobSnapshot) -> bool:
        """Asked of a job that is over and was `committed`: whether nothing that it made is needed any more."""
        ...

    def keeps_time(self, snapshot: JobSnapshot) -> bool:
        """Whether the job's TTL runs at this step."""
        ...


def mode_of(job: PodMigrationJob, config: JobsConfig) -> JobMode:
    return (job.status.mode if job.status is not None else None) or job.spec.mode or config.default_job_mode


def strategy_name(job: PodMigrationJob, pod: Pod, config: JobsConfig, *, machine: bool, surges: bool) -> JobStrategy:
    """Of a job that is being admitted. `machine`: whether a guest runs in the pod, as its instance says and not the pod. `surges`:
    whether the pod can be replaced before it goes, and that is asked for."""
    if not pod.spec.node_name:
        return "Placement"
    if machine:
        return "LiveMigration"
    if pod.controller is None or mode_of(job, config) == "EvictDirectly":
        return "Eviction"
    return "Surge" if surges else "Reservation"
