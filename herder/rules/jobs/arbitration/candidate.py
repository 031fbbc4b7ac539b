"""From objects to what arbitration reads of them: the pod of a job, and a job that runs."""

from __future__ import annotations

import re
from typing import Final

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, VirtualMachineInstance
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.admission import pod_of
from herder.rules.jobs.arbitration.snapshot import CandidatePod, Migrating, WorkloadId
from herder.rules.jobs.arbitration.sorters import QOS_ORDER
from herder.rules.jobs.execution.pod_release import is_marked, is_released
from herder.rules.jobs.execution.status import has, phase_of, status_of
from herder.rules.jobs.execution.surge import needs_no_budget_yet
from herder.rules.jobs.replicas import holds_guest
from herder.rules.jobs.workload import INSTANCE, controller_named
from herder.rules.workloads.pods import is_ready

MIRROR: Final = "kubernetes.io/config.mirror"
# Koordinator's classes of Kubernetes' own.
_QOS: Final = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_LEAST, _MOST = -(2**31), 2**31 - 1


def candidate_pod(pod: Pod, workload: WorkloadId | None, *, machine: bool) -> CandidatePod:
    """`machine`: whether a guest runs in it, as its instance says."""
    return CandidatePod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.spec.node_name,
        labels=pod.labels,
        qos=qos_of(pod),
        priority=pod.spec.priority or 0,
        eviction_cost=int32(pod.annotations.get(labels.EVICTION_COST)),
        ready=is_ready(pod),
        terminating=pod.being_deleted,
        mirror=MIRROR in pod.annotations,
        local_volumes=tuple(one.name for one in pod.spec.volumes if one.empty_dir is not None or one.host_path is not None),
        claims=claims_of(pod),
        machine=machine,
        workload=workload,
    )


def qos_of(pod: Pod) -> str:
    said = pod.labels.get(labels.QOS_CLASS, "")
    return said if said in QOS_ORDER else _QOS.get(pod.status.qos_class, "BE")


def int32(text: str | None) -> int:
    """Of an annotation: what is no such number counts as 0."""
    if text is None or _INTEGER.fullmatch(text) is None:
        return 0
    number = int(text)
    return number if _LEAST <= number <= _MOST else 0


def migration_priority(job: PodMigrationJob) -> int:
    return int32(job.annotations.get(labels.MIGRATION_PRIORITY))


def claims_of(pod: Pod) -> tuple[str, ...]:
    """Those that it names, and those that are made with it."""
    claims: list[str] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            claims.append(f"{pod.name}-{volume.name}")
    return tuple(claims)


def is_machine(pod: Pod, instance: VirtualMachineInstance | None) -> bool:
    """Whether a guest runs in it. `instance`: of the name that its controller has; only the very one that is meant counts."""
    owner = pod.controller
    return (
        owner is not None
        and controller_named(owner).group_kind == INSTANCE
        and instance is not None
        and instance.uid == owner.uid
        and holds_guest(pod, instance)
    )


def why_not_its_guest(pod: Pod, instance: VirtualMachineInstance | None) -> str:
    """Of a pod of an instance in which the guest does not run: to end it would end a migration, or nothing at all."""
    owner = pod.controller
    if owner is None or controller_named(owner).group_kind != INSTANCE or instance is None or instance.uid != owner.uid:
        return ""
    if holds_guest(pod, instance):
        return ""
    running = (instance.status.launcher_pod_name if instance.status else None) or "none yet"
    return f"the guest of VirtualMachineInstance {owner.name} does not run in this pod: must be that in which it does ({running})"


def meant_uid(job: PodMigrationJob) -> str:
    """Of the pod that the job means: another one of its name is not the pod. Empty: whichever has the name."""
    return status_of(job).pod_uid or job.spec.pod_ref.uid or ""


def is_aborted(job: PodMigrationJob) -> bool:
    return job.being_deleted or job.annotations.get(labels.ABORT) == "true"


def migrating(job: PodMigrationJob, pod: Pod | None) -> Migrating:
    """A job that runs. `pod`: whatever has the name that the job says."""
    status, reference = status_of(job), job.spec.pod_ref
    own = pod if pod is not None and pod.uid == status.pod_uid else None
    goes = own is None or own.being_deleted
    evicting = has(job, reasons.EVICTION, "False", reasons.EVICTING)
    return Migrating(
        job=job.name,
        namespace=reference.namespace,
        pod=reference.name,
        uid=status.pod_uid or "",
        node=status.source_node or "",
        workload=workload_id(job),
        ready=own is not None and is_ready(own),
        evicted=has(job, reasons.EVICTION) or (evicting and goes),
    )


def workload_id(job: PodMigrationJob) -> WorkloadId | None:
    """Of a job that was admitted once."""
    found = status_of(job).workload_ref
    return (found.namespace or job.spec.pod_ref.namespace, found.uid or "") if found is not None else None


def is_disrupting(job: PodMigrationJob) -> bool:
    """It has begun what limits are about: whoever comes later counts it, whichever of the two was admitted first."""
    evicting = has(job, reasons.EVICTION) or has(job, reasons.EVICTION, "False", reasons.EVICTING)
    return evicting or status_of(job).migration_ref is not None


def admitted_at(job: PodMigrationJob) -> tuple[float, str]:
    """The order in which running jobs were admitted: the same for everybody who asks."""
    started = status_of(job).start_time
    return (started.timestamp() if started is not None else float("inf")), job.name


def is_surged(job: PodMigrationJob, pod: Pod) -> bool:
    """Whether this job has taken the pod from its ReplicaSet, so that another one comes first."""
    return phase_of(job) == "Running" and status_of(job).strategy == "Surge" and is_released(job, pod)


def is_given_back(job: PodMigrationJob, pod: Pod) -> bool:
    """Of a job that waits again: the pod that it has taken from its ReplicaSet is on its way back."""
    return phase_of(job) == "Pending" and pod.controller is None and is_marked(job, pod)


def claims_budgets(job: PodMigrationJob, pod: Pod, config: JobsConfig) -> bool:
    """Of a job that runs: whether the end of its pod will take something from budgets."""
    return status_of(job).strategy != "LiveMigration" and not needs_no_budget_yet(job, pod, None, config)


def goes_on(jobs: list[PodMigrationJob]) -> PodMigrationJob | None:
    """Of unfinished jobs of one pod, the one that has it: what runs, and of several the first. Those that are being aborted before
    they have begun do nothing any more."""
    running = [job for job in jobs if phase_of(job) == "Running"]
    if running:
        return min(running, key=admitted_at)
    return min((job for job in jobs if not is_aborted(job)), key=lambda job: (created_at(job), job.name), default=None)


def created_at(job: PodMigrationJob) -> float:
    created = job.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def why_another_has_it(job: PodMigrationJob, other: PodMigrationJob) -> str:
    return f"PodMigrationJob {other.name} (phase {phase_of(other)}) is about pod {pod_of(job)}, too, and came first: wait for it"
