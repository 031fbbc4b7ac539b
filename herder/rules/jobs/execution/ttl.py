"""The time that a job has once it runs."""

from __future__ import annotations

from herder.api.duration import parse_seconds
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.execution.status import running_seconds, status_of


def ttl_of(job: PodMigrationJob) -> float:
    """In seconds; 0 is for ever."""
    text = status_of(job).ttl
    return parse_seconds(text) if text else 0.0


def time_left(job: PodMigrationJob, now: float) -> float | None:
    """None: for ever."""
    ttl = ttl_of(job)
    return ttl - running_seconds(job, now) if ttl else None
