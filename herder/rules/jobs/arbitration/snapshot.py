"""Everything that one pass of arbitration looks at: all jobs that wait, all that migrate, and what they are about."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.replicas import Replicas
from herder.rules.jobs.workload import Workload

# Namespace and uid.
WorkloadId = tuple[str, str]
NO_BUDGETS = PodBudgets()


class CandidatePod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What arbitration reads of the pod that is to move."""

    namespace: str
    name: str
    uid: str
    node: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    # Koordinator's: LSE, LSR, LS or BE.
    qos: str = "BE"
    priority: int = 0
    eviction_cost: int = 0
    ready: bool = True
    terminating: bool = False
    # A copy of a pod that its node runs by itself.
    mirror: bool = False
    # The volumes, by name, that are on its node alone; those of claims.
    local_volumes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    # A virtual machine's: it is moved, and not ended.
    machine: bool = False
    # None: nobody controls it.
    workload: WorkloadId | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that waits."""

    name: str
    created: float
    # None: it could not be read. Such a job never passes.
    pod: CandidatePod | None
    paused: bool = False
    # Why no job may be about this pod, as admission would say it by now; or which other job has it.
    forbidden: str = ""
    # Why nobody knows whether its creator may have the pod moved; empty where that is known.
    unjudged: str = ""
    migration_priority: int = 0
    # Jobs of this pod that failed before, and jobs of its workload that moved something: from finished jobs, while they are kept.
    failures: int = 0
    deschedulings: int = 0


class Migrating(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that runs."""

    job: str
    namespace: str
    pod: str
    uid: str
    node: str = ""
    workload: WorkloadId | None = None
    ready: bool = True
    # The API server has accepted the eviction: budgets have counted it.
    evicted: bool = False


class WorkloadState(msgspec.Struct, frozen=True, gc=False):
    workload: Workload
    replicas: Replicas


class ArbitrationSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    config: JobsConfig
    pending: tuple[Candidate, ...] = ()
    migrating: tuple[Migrating, ...] = ()
    workloads: Mapping[WorkloadId, WorkloadState] = msgspec.field(default_factory=dict[WorkloadId, WorkloadState])
    # By the uid of the pod; of pending and migrating ones.
    budgets: Mapping[str, PodBudgets] = msgspec.field(default_factory=dict[str, PodBudgets])

    def budgets_of(self, uid: str) -> PodBudgets:
        return self.budgets.get(uid, NO_BUDGETS)
