"""What Prometheus is told of jobs: how many there are in each phase, how they end, and what was evicted or migrated for them."""

from __future__ import annotations

from collections import Counter as Tally
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge

from herder.api.kinds import PodMigrationJob
from herder.kube.cache import Cache
from herder.kube.kit import Kit
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.status import phase_of

PHASES = ("Pending", "Running", "Succeed", "Failed", "Aborted")


class _Families:
    """Made once for a registry: a process that leads a second time goes on where it was."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.jobs = Gauge("herder_pod_migration_jobs", "PodMigrationJobs, by phase.", ["phase"], registry=registry)
        self.finished = Counter(
            "herder_pod_migration_jobs_finished",
            "PodMigrationJobs that ended, by phase and reason.",
            ["phase", "reason"],
            registry=registry,
        )
        self.disruptions = Counter(
            "herder_pod_migration_disruptions", "Pods that were evicted, or whose machine was migrated.", ["how"], registry=registry
        )
        self.refused = Counter(
            "herder_pod_migration_evictions_refused",
            "Evictions that were refused, by a budget or otherwise.",
            ["by"],
            registry=registry,
        )


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class JobMetrics:
    def __init__(self, kit: Kit, jobs: Cache[PodMigrationJob]) -> None:
        families = _made.get(kit.registry)
        if families is None:
            families = _made[kit.registry] = _Families(kit.registry)
        self._families = families
        self._jobs = jobs
        for phase in PHASES:
            families.jobs.labels(phase).set_function(lambda phase=phase: self._count(phase))
        kit.at_end(self._end)

    def finished(self, phase: str, reason: str) -> None:
        self._families.finished.labels(phase, reason).inc()

    def disrupted(self, plan: JobPlan) -> None:
        self._families.disruptions.labels("Migration" if plan.evict is None else plan.evict.policy).inc()

    def refused(self, by_budget: bool) -> None:
        self._families.refused.labels("Budget" if by_budget else "Server").inc()

    def _count(self, phase: str) -> int:
        """Counted when somebody asks."""
        return Tally(phase_of(job) for job in self._jobs.list())[phase]

    def _end(self) -> None:
        """The term is over: who leads now shows them."""
        for phase in PHASES:
            self._families.jobs.remove(phase)
