"""How much of one workload may be away at once, and not in the middle of a rollout."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api import reasons
from herder.rules.jobs.arbitration.limits.limit import Limit, Wait
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, CandidatePod, Migrating, WorkloadId, WorkloadState
from herder.rules.jobs.limits import max_migrating, max_unavailable


class RolloutLimit(Limit):
    def holds(self, pod: CandidatePod) -> Wait | None:
        state = _state(self.snapshot, pod)
        if state is None or not state.workload.rolling_out:
            return None
        return Wait(reasons.ROLLOUT_IN_PROGRESS, f"{_told(state)} is in the middle of a rollout")


class _PerWorkload(Limit):
    """Which pods of each workload migrate, by uid: the same pod is one."""

    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        super().__init__(snapshot)
        self._migrating: dict[WorkloadId, dict[str, None]] = {}

    def count(self, migrating: Migrating) -> None:
        if migrating.workload is not None:
            self._migrating.setdefault(migrating.workload, {})[migrating.uid] = None

    def migrating(self, pod: CandidatePod) -> Iterable[str]:
        return self._migrating.get(pod.workload, ()) if pod.workload is not None else ()


class WorkloadLimit(_PerWorkload):
    """maxMigratingPerWorkload, or the seed's formula; also where there is a budget."""

    def holds(self, pod: CandidatePod) -> Wait | None:
        state = _state(self.snapshot, pod)
        if state is None:
            return None
        if state.workload.replicas is None:
            return Wait(
                reasons.WAITING_FOR_WORKLOAD_LIMIT, f"how many replicas {_told(state)} has is not known: {state.workload.problem}"
            )
        most = max_migrating(state.workload.replicas, self.config.max_migrating_per_workload)
        now = len([*self.migrating(pod)])
        if now < most:
            return None
        message = f"{now} of {state.workload.replicas} pods of {_told(state)} migrating, and {most} may at once"
        return Wait(reasons.WAITING_FOR_WORKLOAD_LIMIT, message)


class UnavailableLimit(_PerWorkload):
    """maxUnavailablePerWorkload, or the seed's formula, where no budget speaks of the pod. One that waits for its first place is
    not evicted: it may get one however many are missed, itself among them."""

    def holds(self, pod: CandidatePod) -> Wait | None:
        state = _state(self.snapshot, pod)
        if not pod.node or state is None or state.workload.replicas is None or self.snapshot.budgets_of(pod.uid).budgets:
            return None
        most = max_unavailable(state.workload.replicas, self.config.max_unavailable_per_workload)
        away = state.replicas.unavailable_with([*self.migrating(pod), pod.uid])
        if away <= most:
            return None
        message = f"{away} of {state.workload.replicas} pods of {_told(state)} would be unavailable, and {most} may be"
        return Wait(reasons.WAITING_FOR_WORKLOAD_LIMIT, message)


def _state(snapshot: ArbitrationSnapshot, pod: CandidatePod) -> WorkloadState | None:
    return snapshot.workloads.get(pod.workload) if pod.workload is not None else None


def _told(state: WorkloadState) -> str:
    return f"{state.workload.kind} {state.workload.namespace}/{state.workload.name}"
