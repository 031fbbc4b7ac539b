"""What is counted of migrations, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from herder.api import reasons
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration import MigrationPhase
from herder.api.kinds.migration_state import MigrationProgress
from herder.rules.migration import Line
from herder.rules.migration.phases import ORDER, finished, phase_of

SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
DOWNTIME = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10)


class _Families:
    """Made once for a registry: a process that leads a second time goes on counting where it was."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.phases = Gauge("herder_migrations", "Unfinished migrations by phase.", ["phase"], registry=registry)
        self.waiting = Gauge("herder_migrations_waiting", "Migrations whose turn has not come.", registry=registry)
        self.finished = Counter(
            "herder_migrations_finished", "Migrations that are over, by result and why.", ["result", "reason"], registry=registry
        )
        self.seconds = Histogram(
            "herder_migration_duration_seconds",
            "From its turn to its end.",
            ["result", "policy"],
            buckets=SECONDS,
            registry=registry,
        )
        self.bytes = Counter("herder_migration_transferred_bytes", "Memory that was sent.", registry=registry)
        self.downtime = Histogram(
            "herder_migration_downtime_seconds", "How long the guest stood still.", buckets=DOWNTIME, registry=registry
        )
        # From zero: whoever watches for an increase does not see the first of a series that was not there.
        for result, reason in (("succeeded", ""), *(("failed", reason) for reason in reasons.MIGRATION_FAILURES)):
            self.finished.labels(result, reason)


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class MigrationMetrics:
    def __init__(self, registry: CollectorRegistry, line: Line) -> None:
        families = _made.get(registry)
        if families is None:
            families = _made[registry] = _Families(registry)
        self._families = families
        self._read(lambda: line.waiting, lambda phase: line.phases[phase])

    def end(self) -> None:
        """The term is over: who leads now counts them, and nobody shall count them twice."""
        self._read(lambda: 0, lambda phase: 0)

    def _read(self, waiting: Callable[[], int], phases: Callable[[MigrationPhase], int]) -> None:
        self._families.waiting.set_function(waiting)
        for phase in ORDER:
            self._families.phases.labels(phase).set_function(lambda phase=phase: phases(phase))

    def seen(
        self, before: VirtualMachineInstanceMigration | None, after: VirtualMachineInstanceMigration | None, now: float
    ) -> None:
        """Counted when its end is seen, not when it is written: of that the answer may be lost."""
        if before is not None and after is None and phase_of(before) == "Pending":
            # It waited, and nothing held it: deleted, it is gone without a word.
            self._families.finished.labels("failed", reasons.CANCELLED).inc()
        if before is None or after is None or finished(before) or not finished(after) or after.status is None:
            return
        status, families = after.status, self._families
        result = phase_of(after).lower()
        families.finished.labels(result, status.reason or "").inc()
        if status.start_timestamp is not None:
            policy = (status.migration_policy.name if status.migration_policy else None) or ""
            families.seconds.labels(result, policy).observe(max(0.0, now - status.start_timestamp.timestamp()))
        progress = status.progress or MigrationProgress()
        families.bytes.inc(progress.transferred_bytes or 0)
        if result == "succeeded" and progress.downtime_ms is not None:
            families.downtime.observe(progress.downtime_ms / 1000)
