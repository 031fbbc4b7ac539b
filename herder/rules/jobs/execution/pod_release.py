"""How a pod is taken from its ReplicaSet and given back, each in one write.

The label `pod-template-hash` is what tells the pods of a Deployment's ReplicaSets apart: without it the ReplicaSet lets the pod go
and makes another one. All other labels stay, and with them Services, budgets and policies that select the pod. Meanwhile the
Deployment is written down as an owner that does not manage it: if it is deleted, the garbage collector ends the pod as it would
have done before, whether we run or not; and by that a pod that was taken away is known from one that somebody else set apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herder.api.core import DaemonSet, Pod, ReplicaSet, StatefulSet
from herder.api.kinds import PodMigrationJob
from herder.api.meta import ObjectReference
from herder.rules.jobs.execution.eviction import has_begun
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import status_of
from herder.rules.plans import Document
from herder.rules.workloads.claiming import selects
from herder.rules.workloads.templates import TEMPLATE_HASH


def is_released(job: PodMigrationJob, pod: Pod) -> bool:
    """Whether this job took the pod from its ReplicaSet, which may not have noticed yet."""
    return TEMPLATE_HASH not in pod.labels and (is_marked(job, pod) or has_begun(job))


def is_marked(job: PodMigrationJob, pod: Pod) -> bool:
    workload = status_of(job).workload_ref
    owners = pod.metadata.owner_references or ()
    return workload is not None and any(owner.uid == workload.uid and not owner.controller for owner in owners)


def would_adopt(pod: Pod, controllers: Iterable[ReplicaSet | StatefulSet | DaemonSet]) -> tuple[str, ...]:
    """Of the controllers in the pod's namespace, those that take the pod in once it is let go, each as "Kind name"."""
    left = {name: value for name, value in pod.labels.items() if name != TEMPLATE_HASH}
    found = (one for one in controllers if not one.being_deleted and selects(one.spec.selector, left))
    # Of a StatefulSet only who has the name of one of its pods.
    fitting = (one for one in found if not isinstance(one, StatefulSet) or pod.name.rpartition("-")[0] == one.name)
    return tuple(sorted(f"{type(one).__name__} {one.name}" for one in fitting))


def release_patch(job: PodMigrationJob) -> Document:
    workload = status_of(job).workload_ref
    owners = [_owner(workload)] if workload is not None else []
    return {"metadata": {"labels": {TEMPLATE_HASH: None}, "ownerReferences": owners}}


def return_patch(snapshot: JobSnapshot, pod: Pod) -> Document | None:
    """What gives the pod back; None where it was not taken, is given back, goes, or somebody else has taken it in.

    The ReplicaSet is written down as its controller, and not only the label: one that has been deleted meanwhile takes nobody in,
    and the garbage collector then ends the pod with it, as if it had never been taken away."""
    job, origin = snapshot.job, status_of(snapshot.job).controller_ref
    if pod.being_deleted or origin is None or not (is_marked(job, pod) or has_begun(job)):
        return None
    labels = _missing_label(pod, snapshot.replica_set)
    if pod.controller is not None and (pod.controller_uid != origin.uid or not labels):
        return _without_mark(job, pod)
    unmarked = _without_mark(job, pod)
    owners = [{**_owner(origin), "controller": True}, *(unmarked["metadata"]["ownerReferences"] if unmarked else ())]
    return {"metadata": {"ownerReferences": owners, **({"labels": labels} if labels else {})}}


def _missing_label(pod: Pod, replica_set: ReplicaSet | None) -> Document:
    value = replica_set.labels.get(TEMPLATE_HASH) if replica_set is not None else None
    return {TEMPLATE_HASH: value} if value is not None and pod.labels.get(TEMPLATE_HASH) != value else {}


def _without_mark(job: PodMigrationJob, pod: Pod) -> Document | None:
    workload = status_of(job).workload_ref
    if workload is None or not is_marked(job, pod):
        return None
    return {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": workload.uid}]}}


def _owner(reference: ObjectReference) -> dict[str, Any]:
    """Without `blockOwnerDeletion`: whoever sets that must be allowed to write the owner's finalizers, where that is enforced."""
    return {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name, "uid": reference.uid}
