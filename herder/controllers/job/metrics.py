"""What is counted of arbitration, for Prometheus."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from herder.api import reasons
from herder.controllers.job.candidates import Candidates
from herder.kube.kit import Kit
from herder.rules.jobs.execution.status import status_of

# All for which a job waits, before it begins or right before its pod is disturbed.
WAITING = (
    reasons.WAITING_FOR_GLOBAL_LIMIT,
    reasons.WAITING_FOR_NODE_LIMIT,
    reasons.WAITING_FOR_NAMESPACE_LIMIT,
    reasons.WAITING_FOR_WORKLOAD_LIMIT,
    reasons.WAITING_FOR_DISRUPTION_BUDGET,
    reasons.WAITING_FOR_FLOW_CONTROL,
    reasons.WAITING_FOR_POD,
    reasons.WAITING_FOR_ADMISSION,
    reasons.ROLLOUT_IN_PROGRESS,
    reasons.PAUSED,
    reasons.DISABLED,
)
_SECONDS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class _Families:
    """Made once for a registry: a process that leads a second time goes on where it was."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.waiting = Gauge(
            "herder_migration_jobs_waiting",
            "PodMigrationJobs that have not begun, or wait right before their pod is disturbed, by what holds them.",
            ["reason"],
            registry=registry,
        )
        self.passes = Histogram(
            "herder_job_arbitration_seconds",
            "Time that a pass of arbitration took to decide.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.outcomes = Counter(
            "herder_job_arbitration_outcomes",
            "PodMigrationJobs that arbitration has let begin (admitted), or ended (refused, with the reason).",
            ["outcome", "reason"],
            registry=registry,
        )


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class ArbitrationMetrics:
    def __init__(self, kit: Kit, candidates: Candidates) -> None:
        families = _made.get(kit.registry)
        if families is None:
            families = _made[kit.registry] = _Families(kit.registry)
        self._families = families
        self._candidates = candidates
        for reason in WAITING:
            families.waiting.labels(reason).set_function(lambda reason=reason: self._count(reason))
        kit.at_end(self._end)

    def passed(self, seconds: float) -> None:
        self._families.passes.observe(seconds)

    def decided(self, outcome: str, reason: str) -> None:
        """Once it is written."""
        self._families.outcomes.labels(outcome, reason).inc()

    def _end(self) -> None:
        """The term is over: who leads now shows them."""
        for reason in WAITING:
            self._families.waiting.remove(reason)

    def _count(self, reason: str) -> int:
        pending = sum(wait.reason == reason for wait in self._candidates.standing.held.values())
        return pending + sum(status_of(job).reason == reason for job in self._candidates.running())
