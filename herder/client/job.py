"""A PodMigrationJob as other programs see it: a value, equal to another one where nothing has happened between the two."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import PodMigrationJobStatus

Phase = Literal["Pending", "Running", "Succeed", "Failed", "Aborted"]
Mode = Literal["ReservationFirst", "EvictDirectly"]
FINISHED: tuple[Phase, ...] = ("Succeed", "Failed", "Aborted")
_NO_STATUS = PodMigrationJobStatus()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of the job, such as ReservationScheduled or Eviction."""

    type: str
    # True, False or Unknown.
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str
    # The pod that is to move.
    namespace: str
    pod: str
    phase: Phase
    # Why it waits or how it ended: one word for programs, and a sentence for people.
    reason: str = ""
    message: str = ""
    paused: bool = False
    # How it is moved, once it runs: Reservation, Surge, LiveMigration, Eviction or Placement.
    strategy: str = ""
    source_node: str = ""
    # Where the pod that took its place is, and what that is called; empty as long as there is none.
    node: str = ""
    replacement: str = ""
    # The identity of the pod that is moved: that of the job's first look, or the one that was asked for.
    pod_uid: str = ""
    created: datetime | None = None
    # Since when `reason` holds it.
    waiting_since: datetime | None = None
    started: datetime | None = None
    completed: datetime | None = None
    # In the order in which they are reached.
    steps: tuple[Step, ...] = ()

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def succeeded(self) -> bool:
        return self.phase == "Succeed"


def job_of(written: PodMigrationJob) -> Job:
    status, asked = written.status or _NO_STATUS, written.spec.pod_ref
    conditions = status.conditions or ()
    return Job(
        name=written.name,
        uid=written.uid,
        namespace=asked.namespace,
        pod=asked.name,
        phase=status.phase or "Pending",
        reason=status.reason or "",
        message=status.message or "",
        paused=bool(written.spec.paused),
        strategy=status.strategy or "",
        source_node=status.source_node or "",
        node=status.node_name or "",
        replacement=(status.pod_ref.name if status.pod_ref is not None else None) or "",
        pod_uid=status.pod_uid or asked.uid or "",
        created=written.metadata.creation_timestamp,
        waiting_since=status.waiting_since,
        started=status.start_time,
        completed=status.completion_time,
        steps=tuple(
            Step(
                type=one.type,
                status=one.status,
                reason=one.reason or "",
                message=one.message or "",
                since=one.last_transition_time,
            )
            for one in conditions
        ),
    )
