"""The live migration by which a job moves a guest: the one that it makes, or the one that somebody else has made already.

The guest stays what it is, so nothing is evicted and nothing is missed. An unfinished migration of the machine is followed, whoever
made it: a guest is moved once at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from herder.api import labels, reasons, registry
from herder.api.kinds import PodMigrationJob, VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.kinds.migration import VirtualMachineInstanceMigrationSpec
from herder.rules.instances.launcher import launcher_pod
from herder.rules.migration.phases import finished, phase_of
from herder.rules.migration.where import affinity_of_target, started_of
from herder.rules.plans import Document

# As one that is made because a node is emptied: people's own go first.
PRIORITY: Final = "system-maintenance"
# Which one a job follows: the lower, the sooner.
TOOK_IT_AWAY, UNDER_WAY, WAITS, OF_OURS_FAILED = range(4)


def migration_name(job: PodMigrationJob) -> str:
    """By the job's uid alone: whoever makes it twice makes the same one."""
    return f"job-{job.uid}"


def migration_document(job: PodMigrationJob, instance: VirtualMachineInstance, node: str = "") -> Document:
    """`node`: the one that has room reserved for the guest; any where there is none.

    It has no ownerReference: deleting it cancels it, and a job that is deleted when the guest has been handed over must not."""
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": registry.MIGRATION.api_version,
        "kind": registry.MIGRATION.kind,
        "metadata": {
            "name": migration_name(job),
            "namespace": instance.namespace,
            "labels": {labels.JOB: job.uid},
            "annotations": {labels.JOB: job.name},
        },
        "spec": {
            "vmiName": instance.name,
            "priority": PRIORITY,
            **({"addedNodeSelectorTerm": pinned} if node else {}),
        },
    }


def pod_to_reserve_for(instance: VirtualMachineInstance, written: Document) -> Document:
    """What a migration's target would be, as a pod. Not the pod that the guest is in: that one may have been the target of another
    migration, which had its own idea of where to go. `written`: the instance as it is stored."""
    started = started_of(instance)
    document = launcher_pod(written, instance.spec, started)
    spec = VirtualMachineInstanceMigrationSpec(vmi_name=instance.name)
    source = (instance.status.node_name if instance.status is not None else None) or ""
    affinity = affinity_of_target(document["spec"].get("affinity"), spec, started, source)
    return {**document, "spec": {**document["spec"], "affinity": affinity}}


def is_made_by(job: PodMigrationJob, migration: VirtualMachineInstanceMigration) -> bool:
    """Only such a one is ever deleted by the job."""
    return migration.name == migration_name(job) and migration.labels.get(labels.JOB) == job.uid


def is_handed_over(migration: VirtualMachineInstanceMigration) -> bool:
    """Its source has given the guest away for good: by the end of the copy, or because it goes on by post-copy."""
    state = migration.status.migration_state if migration.status is not None else None
    given_away = state is not None and state.handed_over_timestamp is not None
    return given_away or phase_of(migration) == "Succeeded"


def has_left(migration: VirtualMachineInstanceMigration, pod: str) -> bool:
    """It began, and its source is the pod of this name."""
    state = migration.status.migration_state if migration.status is not None else None
    return state is not None and state.source_pod == pod


def is_being_cancelled(migration: VirtualMachineInstanceMigration) -> bool:
    return migration.being_deleted and not finished(migration) and not is_handed_over(migration)


def followed_migration(
    job: PodMigrationJob, migrations: Iterable[VirtualMachineInstanceMigration], *, holds_guest: bool
) -> VirtualMachineInstanceMigration | None:
    """The migration whose outcome is the job's, out of all of the machine. `holds_guest`: whether the guest runs in the job's pod,
    so that one that has not begun will take it away from there."""
    known = list(migrations)
    written = _written(job, known)
    ranked = [(rank, *_age(one), one) for one in known if (rank := _rank(job, one, holds_guest)) is not None]
    best = min(ranked, key=lambda each: each[:3], default=None)
    if best is None or (written is not None and best[0] >= _gives_way_to(written)):
        return written
    return best[3]


def _written(job: PodMigrationJob, migrations: Iterable[VirtualMachineInstanceMigration]) -> VirtualMachineInstanceMigration | None:
    reference = job.status.migration_ref if job.status is not None else None
    return next((one for one in migrations if reference is not None and reference.uid and one.uid == reference.uid), None)


def _gives_way_to(written: VirtualMachineInstanceMigration) -> int:
    """The one that the job follows: only to others of a lower rank. To one that took the guest away always; one that failed also to
    one that is under way; and one that failed because another was made at the same moment also to that."""
    if phase_of(written) != "Failed":
        return UNDER_WAY
    reason = written.status.reason if written.status is not None else None
    return OF_OURS_FAILED if reason == reasons.ANOTHER_MIGRATION else WAITS


def _rank(job: PodMigrationJob, migration: VirtualMachineInstanceMigration, holds_guest: bool) -> int | None:
    """The lower, the sooner; None for one that is not about this pod, or is being called off."""
    phase, left = phase_of(migration), has_left(migration, job.spec.pod_ref.name)
    if phase == "Succeeded":
        return TOOK_IT_AWAY if left else None
    if phase == "Failed":
        # Of those that failed only its own concerns the job: it was over before anybody looked.
        return OF_OURS_FAILED if is_made_by(job, migration) and not migration.being_deleted else None
    if is_being_cancelled(migration):
        return None
    if phase == "Pending":
        return WAITS if holds_guest else None
    return UNDER_WAY if left else None


def _age(migration: VirtualMachineInstanceMigration) -> tuple[float, str]:
    made = migration.metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0, migration.name)
