"""Where the guest of a job's pod is: there still, in another pod, or nowhere any more."""

from __future__ import annotations

from typing import Final

from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.rules.instances.plan import phase_of
from herder.rules.jobs.execution.eviction import pod_name
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import status_of
from herder.rules.jobs.replicas import holds_guest

_ENDED: Final = ("Succeeded", "Failed")


def instance_of(snapshot: JobSnapshot) -> VirtualMachineInstance | None:
    """The very one: another one of its name has another guest."""
    owner, found = status_of(snapshot.job).controller_ref, snapshot.instance
    return found if found is not None and (owner is None or owner.uid == found.uid) else None


def is_alive(instance: VirtualMachineInstance) -> bool:
    return not instance.being_deleted and phase_of(instance) not in _ENDED


def guest_is_there(snapshot: JobSnapshot) -> bool:
    """Whether the guest is where it was: as its instance says, also of a pod that is gone."""
    instance = instance_of(snapshot)
    if snapshot.pod is not None:
        return instance is not None and holds_guest(snapshot.pod, instance)
    known = instance.status.launcher_pod_name if instance is not None and instance.status is not None else None
    return known in (None, "", snapshot.job.spec.pod_ref.name)


def why_no_guest(snapshot: JobSnapshot) -> str:
    instance, pod, name = instance_of(snapshot), snapshot.pod, pod_name(snapshot.job)
    if instance is None:
        return f"the VirtualMachineInstance whose guest ran in pod {name} is gone"
    if not is_alive(instance):
        return f"VirtualMachineInstance {instance.namespace}/{instance.name} has ended, or is told to: there is no guest to move"
    if not guest_is_there(snapshot):
        status = instance.status
        where = f": it is in pod {status.launcher_pod_name} on node {status.node_name}" if status and status.node_name else ""
        return f"the guest of {instance.namespace}/{instance.name} has left pod {name}, and not because of this job{where}"
    if pod is None:
        return f"pod {name} is gone, and not because of this job"
    return f"pod {name} is being deleted, and its guest ends with it" if pod.being_deleted else ""


def target_pod_of(snapshot: JobSnapshot, migration: VirtualMachineInstanceMigration | None) -> Pod | None:
    """By the name that the migration's controller wrote down, among pods of the instance; where the migration is gone,
    the pod that the instance names."""
    if migration is not None:
        name = migration.status.target_pod if migration.status is not None else None
    else:
        instance = instance_of(snapshot)
        name = instance.status.launcher_pod_name if instance is not None and instance.status is not None else None
    return next((pod for pod in snapshot.siblings if name and pod.name == name), None)
