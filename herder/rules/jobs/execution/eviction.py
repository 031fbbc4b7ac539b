"""How the pod of a job is ended, and how far that is."""

from __future__ import annotations

from typing import Final, Literal

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.admission import POD_ENDED
from herder.rules.jobs.execution.plan import Evict
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import has, status_of
from herder.rules.plans import Document, condition, find, plain

_OPTIONS: Final = ("gracePeriodSeconds", "propagationPolicy", "orphanDependents", "preconditions")


def has_begun(job: PodMigrationJob) -> bool:
    """Written before the first try: from then on the pod may be going because of us, whatever became of our answer."""
    return find(status_of(job).conditions, reasons.EVICTION) is not None


def is_evicted(snapshot: JobSnapshot) -> bool:
    """It goes, or has gone, and not without us. Whether it was our try or somebody's own makes no difference from then on: another
    pod will come, and the room is for it."""
    if has(snapshot.job, reasons.EVICTION):
        return True
    return has_begun(snapshot.job) and (snapshot.pod is None or snapshot.pod.being_deleted)


def why_not_there(snapshot: JobSnapshot) -> tuple[str, str] | None:
    """Reason and sentence where there is nothing left to be moved: asked before the eviction."""
    pod = snapshot.pod
    name = pod_name(snapshot.job)
    if pod is None:
        return reasons.MISSING_POD, f"pod {name} is gone, and not because of this job"
    if pod.being_deleted:
        return reasons.MISSING_POD, f"pod {name} is being deleted, and not because of this job"
    if pod.status.phase in POD_ENDED and pod.controller is not None:
        return reasons.FORBIDDEN_MIGRATE_POD, f"pod {name} has ended (phase {pod.status.phase}): there is nothing to move"
    return None


def pod_name(job: PodMigrationJob) -> str:
    return f"{job.spec.pod_ref.namespace}/{job.spec.pod_ref.name}"


def evict_of(snapshot: JobSnapshot, pod: Pod) -> Evict:
    return Evict(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, policy=policy_of(pod, snapshot.config), options=_options(snapshot)
    )


def evicting(message: str = "") -> Document:
    return condition(reasons.EVICTION, False, reasons.EVICTING, message)


def eviction_condition(snapshot: JobSnapshot) -> Document:
    """Of a pod that was evicted."""
    if snapshot.pod is None:
        return condition(reasons.EVICTION, True, reasons.EVICT_COMPLETE)
    return evicting(f"pod {pod_name(snapshot.job)} is told to end, and has not ended yet")


def policy_of(pod: Pod, config: JobsConfig) -> Literal["Eviction", "Delete"]:
    own = pod.labels.get(labels.EVICT_POLICY)
    return own if own == "Eviction" or own == "Delete" else config.eviction_policy


def _options(snapshot: JobSnapshot) -> Document:
    """The job's own, else those of the configuration."""
    given = snapshot.job.spec.delete_options or snapshot.config.default_delete_options
    options = plain(given) or {}
    return {name: options[name] for name in _OPTIONS if name in options}
