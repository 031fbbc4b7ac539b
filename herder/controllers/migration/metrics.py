"""What is counted of migrations, for Prometheus."""

from __future__ import annotations

import datetime
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.rules.migration import FINISHED, UNDER_WAY, Line
from herder.rules.plans import Document

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
        for result in ("succeeded", "failed"):
            self.finished.labels(result, "")


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class MigrationMetrics:
    def __init__(self, registry: CollectorRegistry, line: Line) -> None:
        families = _made.get(registry)
        if families is None:
            families = _made[registry] = _Families(registry)
        self._families = families
        families.waiting.set_function(lambda: line.waiting)
        for phase in ("Pending", *UNDER_WAY):
            families.phases.labels(phase).set_function(lambda phase=phase: line.phases[phase])

    def reached(self, migration: VirtualMachineInstanceMigration, status: Document, now: float) -> None:
        if status["phase"] not in FINISHED:
            return
        result = status["phase"].lower()
        self._families.finished.labels(result, status.get("reason", "")).inc()
        began = status.get("startTimestamp")
        if began:
            policy = status.get("migrationPolicy", {}).get("name", "")
            since = datetime.datetime.fromisoformat(began).timestamp()
            self._families.seconds.labels(result, policy).observe(max(0.0, now - since))
        progress = status.get("progress", {})
        self._families.bytes.inc(progress.get("transferredBytes", 0))
        if result == "succeeded" and "downtimeMs" in progress:
            self._families.downtime.observe(progress["downtimeMs"] / 1000)
