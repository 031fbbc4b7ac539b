"""What a PodMigrationJob may not be because of its pod, its creator and other jobs: the same on both engines (seed 004).

Pod and other jobs are asked about only when it is created: a job whose pod is gone meanwhile can still be paused, reported on and
ended. What may change between being let in and being carried out (the pod, its owner, the settings) the controller looks at again;
who wrote it, it cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.api.meta import OwnerReference
from herder.api.problems import NOT_FOUND, Problem, forbidden, invalid, quoted, shown

POD_REF, NAME = "spec.podRef", "spec.podRef.name"
ENDED = ("Succeed", "Failed", "Aborted")
POD_ENDED = ("Succeeded", "Failed")
ALLOWED_BY_SETTING = "evictFailedBarePods: true in jobs.yaml of herder-config lets one go that is Failed"


def job_problems(
    job: PodMigrationJob, pod: Pod | None, others: Iterable[PodMigrationJob], evict_failed_bare_pods: bool
) -> list[Problem]:
    """Of a new job, whose creator has all rights that it takes. `pod`: what its podRef names; `others`: jobs that may be about the
    same pod."""
    if pod is None:
        return [_no_such_pod(job)]
    return _other_pod(job, pod) or _not_movable(pod, evict_failed_bare_pods) or _already_moving(job, others)


def is_unfinished(job: PodMigrationJob) -> bool:
    return job.status is None or job.status.phase not in ENDED


def pod_of(job: PodMigrationJob) -> str:
    """What jobs of one pod have in common. Not its uid: the job of a StatefulSet's pod goes on with the next one of that name."""
    return f"{job.spec.pod_ref.namespace}/{job.spec.pod_ref.name}"


def _no_such_pod(job: PodMigrationJob) -> Problem:
    reference = job.spec.pod_ref
    said = f"there is no pod of this name in namespace {quoted(reference.namespace)}: a job must name a pod that is there"
    return Problem(NAME, NOT_FOUND, f"Not found: {shown(reference.name)}: {said}")


def _other_pod(job: PodMigrationJob, pod: Pod) -> list[Problem]:
    uid = job.spec.pod_ref.uid
    if not uid or uid == pod.uid:
        return []
    said = f"the pod of this name has uid {quoted(pod.uid)}: must be that one, or be left out for whichever pod is there"
    return [invalid("spec.podRef.uid", uid, said)]


def _not_movable(pod: Pod, evict_failed_bare_pods: bool) -> list[Problem]:
    why = why_not_movable(pod, evict_failed_bare_pods)
    return [invalid(NAME, pod.name, why)] if why else []


def why_not_movable(pod: Pod, evict_failed_bare_pods: bool) -> str:
    """Empty where a job may be about this pod. Asked when the job is created, and again before it begins."""
    owner, phase = pod.controller, pod.status.phase
    if owner is None:
        if phase == "Failed" and evict_failed_bare_pods:
            return ""
        advice = (
            ALLOWED_BY_SETTING if phase == "Failed" else "delete it, or have it made by a Deployment, a StatefulSet or the like"
        )
        return f"no controller owns the pod, so no other would take its place: {advice}"
    if _is_batch(owner):
        return (
            f"the pod belongs to Job {owner.name}, whose work would begin anew: must be a pod that runs for as long as it is wanted"
        )
    if phase in POD_ENDED:
        return f"the pod has ended (phase {phase}): must be one that runs, or waits to run"
    return ""


def _is_batch(owner: OwnerReference) -> bool:
    return owner.kind == "Job" and owner.api_version.partition("/")[0] == "batch"


def _already_moving(job: PodMigrationJob, others: Iterable[PodMigrationJob]) -> list[Problem]:
    moving = [one for one in others if one.name != job.name and pod_of(one) == pod_of(job) and is_unfinished(one)]
    if not moving:
        return []
    other = min(moving, key=lambda one: one.name)
    phase = (other.status.phase if other.status is not None else None) or "Pending"
    advice = "it is being aborted: wait until it is gone" if other.being_deleted else "wait for it, or delete it to abort it"
    return [forbidden(POD_REF, f"PodMigrationJob {other.name} of pod {pod_of(job)} is not finished (phase {phase}): {advice}")]
