"""What finished jobs tell about those that wait: kept as long as they are (`finishedJobTTL`)."""

from __future__ import annotations

from herder.api import reasons
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.arbitration.candidate import workload_id
from herder.rules.jobs.arbitration.snapshot import WorkloadId
from herder.rules.jobs.execution.status import has, phase_of, status_of


def failed_pod(job: PodMigrationJob) -> str:
    """The uid of the pod that a job failed to move; empty for every other job."""
    if phase_of(job) != "Failed":
        return ""
    return status_of(job).pod_uid or job.spec.pod_ref.uid or ""


def descheduled(job: PodMigrationJob) -> WorkloadId | None:
    """The workload of which a finished job has moved a pod. One that only tried has not, nor one that was a dry run."""
    status = status_of(job)
    if status.completion_time is None or status.reason == reasons.DRY_RUN:
        return None
    return workload_id(job) if status.phase == "Succeed" or has(job, reasons.EVICTION) else None
