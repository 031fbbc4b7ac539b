"""Whether a workload is in the middle of a rollout: then its pods come and go by themselves, and jobs wait.

That pods come and go for another reason is no rollout: a replica that was evicted, a scale-up. What has not looked at its spec
yet may be about to roll out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from herder.api import reasons
from herder.api.core import DaemonSet, Deployment, Pod, ReplicaSet, StatefulSet
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import find

REVISION_LABEL: Final = "controller-revision-hash"
# What a Deployment says of itself from the first pod of a new template until all of them have been available once.
_DEPLOYMENT_UNFINISHED: Final = (
    reasons.NEW_REPLICA_SET_CREATED,
    reasons.FOUND_NEW_REPLICA_SET,
    reasons.REPLICA_SET_UPDATED,
    reasons.PROGRESS_DEADLINE_EXCEEDED,
)
# What a pool says while machines are taken down for a new template, or wait in the middle of that.
_POOL_UNFINISHED: Final = (reasons.ROLLING_OUT, reasons.ROLLOUT_PAUSED, reasons.PROGRESS_DEADLINE_EXCEEDED)


def is_behind(generation: int | None, observed: int | None) -> bool:
    """Nobody has acted upon the spec as it is now."""
    return (observed or 0) < (generation or 0)


def deployment_rolls_out(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> bool:
    """`replica_sets`: all that it controls. Also where it is paused in the middle."""
    status = deployment.status
    if is_behind(deployment.metadata.generation, status.observed_generation) or status.replicas > status.updated_replicas:
        return True
    if sum(1 for one in replica_sets if one.spec.replicas != 0 or one.status.replicas > 0) > 1:
        return True
    progress = next((one for one in status.conditions if one.type == reasons.PROGRESSING), None)
    return progress is not None and progress.reason in _DEPLOYMENT_UNFINISHED


def stateful_set_rolls_out(stateful_set: StatefulSet, pods: Iterable[Pod]) -> bool:
    """With a partition, only those from that number on are to change. With OnDelete nobody rolls: whoever deletes a pod updates
    it, and currentRevision is never written again."""
    status, strategy = stateful_set.status, stateful_set.spec.update_strategy
    if is_behind(stateful_set.metadata.generation, status.observed_generation):
        return True
    if strategy.type == "OnDelete" or status.current_revision == status.update_revision:
        return False
    partition = (strategy.rolling_update.partition if strategy.rolling_update is not None else None) or 0
    if partition == 0:
        return True
    first = (stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0) + partition
    return any(
        pod.labels.get(REVISION_LABEL) != status.update_revision
        for pod in pods
        if (ordinal := ordinal_of(pod.name)) is not None and ordinal >= first
    )


def ordinal_of(name: str) -> int | None:
    """7 of `db-7`."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def daemon_set_rolls_out(daemon_set: DaemonSet) -> bool:
    status = daemon_set.status
    if is_behind(daemon_set.metadata.generation, status.observed_generation):
        return True
    return daemon_set.spec.update_strategy.type != "OnDelete" and status.updated_number_scheduled < status.desired_number_scheduled


def pool_rolls_out(pool: VirtualMachinePool) -> bool:
    """A limit that is reached, and machines that wait for a restart by somebody else, are no rollout that goes on. One that was
    rolled back is over when no machine has the failed revision any more."""
    status = pool.status
    if is_behind(pool.metadata.generation, status.observed_generation if status is not None else None):
        return True
    progress = find(status.conditions if status is not None else None, reasons.PROGRESSING)
    if status is None or progress is None:
        return False
    if progress.reason == reasons.ROLLED_BACK:
        return (status.updated_replicas or 0) > 0
    return progress.reason in _POOL_UNFINISHED
