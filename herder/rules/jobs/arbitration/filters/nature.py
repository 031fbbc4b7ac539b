"""What a pod is, or what its owner says of it."""

from __future__ import annotations

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.snapshot import CandidatePod, WorkloadState
from herder.rules.jobs.workload import DAEMON_SET

# math.MaxInt32: the seed's word for never.
NEVER_EVICTED = 2**31 - 1
COST_ANNOTATION = "scheduling.koordinator.sh/eviction-cost"


def is_terminating(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return "the pod is being deleted already" if pod.terminating else ""


def is_mirror(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return f"the pod is a copy of one that node {pod.node} runs by itself" if pod.mirror else ""


def is_of_daemon_set(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    if state is None or state.workload.group_kind != DAEMON_SET:
        return ""
    return f"the pod belongs to DaemonSet {state.workload.name}, which would put it back on node {pod.node}"


def costs_too_much(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return f"the pod's annotation {COST_ANNOTATION} is {NEVER_EVICTED}: never" if pod.eviction_cost >= NEVER_EVICTED else ""
