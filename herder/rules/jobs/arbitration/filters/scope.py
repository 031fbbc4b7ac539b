"""Namespaces and labels that the configuration speaks of."""

from __future__ import annotations

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.snapshot import CandidatePod, WorkloadState


def is_in_excluded_namespace(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return "" if pod.namespace in config.namespaces else f"namespaces of jobs.yaml leave out namespace {pod.namespace}"


def has_other_labels(pod: CandidatePod, state: WorkloadState | None, config: JobsConfig) -> str:
    return "" if config.label_selector.matches(pod.labels) else "labelSelector of jobs.yaml does not pick the pod"
