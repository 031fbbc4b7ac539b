"""Finds the jobs that something else is about."""

from __future__ import annotations

from herder.api.kinds import PodMigrationJob
from herder.kube.cache import Index, Stored
from herder.rules.jobs.admission import pod_of
from herder.rules.jobs.execution.room import referred_to
from herder.rules.jobs.execution.status import is_over, status_of


def _pod(stored: Stored[PodMigrationJob]) -> tuple[str, ...]:
    return () if is_over(stored.view) else (pod_of(stored.view),)


def _reservation(stored: Stored[PodMigrationJob]) -> tuple[str, ...]:
    """Finished ones too: what was evicted may take the room when its job is over."""
    return (referred_to(stored.view),)


def _controller(stored: Stored[PodMigrationJob]) -> tuple[str, ...]:
    owner = status_of(stored.view).controller_ref
    return (owner.uid,) if owner is not None and owner.uid and not is_over(stored.view) else ()


# By `namespace/name` of the pod.
BY_POD: Index[PodMigrationJob] = Index("pod of unfinished jobs", _pod)
BY_REFERENCE: Index[PodMigrationJob] = Index("reservation of jobs", _reservation)
# By the uid of who makes pods like the one that is moved.
BY_CONTROLLER_REF: Index[PodMigrationJob] = Index("controller of the pods of unfinished jobs", _controller)
