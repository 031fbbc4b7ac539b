"""What a pod would leave behind."""

from __future__ import annotations

from collections.abc import Sequence

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.snapshot import CandidatePod, WorkloadState

MOST_NAMED = 3


def has_local_storage(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    """A guest's pod has scratch space and loses nothing: the guest takes its memory and its disks along."""
    if not pod.local_volumes or pod.machine or config.evict_local_storage_pods:
        return ""
    return f"volume {_named(pod.local_volumes)} is on node {pod.node} alone; evictLocalStoragePods would let the pod go"


def has_claims(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    if not pod.claims or not config.ignore_pvc_pods:
        return ""
    return f"the pod uses claim {_named(pod.claims)}, and ignorePvcPods leaves such pods where they are"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown
