"""Pods that no job may move: the first filter that says why ends the job. One more is a function in a module here, and a line."""

from __future__ import annotations

from collections.abc import Callable

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.filters.importance import is_system_critical, is_too_important
from herder.rules.jobs.arbitration.filters.nature import costs_too_much, is_mirror, is_of_daemon_set, is_terminating
from herder.rules.jobs.arbitration.filters.scope import has_other_labels, is_in_excluded_namespace
from herder.rules.jobs.arbitration.filters.storage import has_claims, has_local_storage
from herder.rules.jobs.arbitration.snapshot import CandidatePod, WorkloadState

# Why not; empty where nothing speaks against it.
Filter = Callable[[CandidatePod, WorkloadState | None, JobsConfig], str]

FILTERS: tuple[Filter, ...] = (
    is_terminating,
    is_mirror,
    is_of_daemon_set,
    costs_too_much,
    is_system_critical,
    is_too_important,
    is_in_excluded_namespace,
    has_other_labels,
    has_local_storage,
    has_claims,
)


def why_never(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return next((why for one in FILTERS if (why := one(pod, state, config))), "")
