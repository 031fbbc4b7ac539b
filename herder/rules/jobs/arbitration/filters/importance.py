"""Pods that are too important to be moved."""

from __future__ import annotations

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.snapshot import CandidatePod, WorkloadState

# Kubernetes' own, from system-cluster-critical on.
SYSTEM_CRITICAL = 2_000_000_000


def is_system_critical(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    if pod.priority < SYSTEM_CRITICAL or config.evict_system_critical_pods:
        return ""
    return f"the pod's priority {pod.priority} is that of system-critical pods; evictSystemCriticalPods would let it go"


def is_too_important(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    threshold = config.priority_threshold
    # What lets pods of any priority go comes first.
    if threshold is None or pod.priority < threshold or config.evict_system_critical_pods:
        return ""
    return f"the pod's priority {pod.priority} is not below priorityThreshold {threshold}"
