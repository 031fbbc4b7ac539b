"""What the scheduler counts. Made once for each registry: whoever leads a second time goes on counting."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

RESULTS = ("scheduled", "unschedulable", "error")
SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1)


class SchedulerMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        attempts = Counter("herder_schedule_attempts", "Attempts to place a pod, by result.", ["result"], registry=registry)
        self.attempts = {result: attempts.labels(result) for result in RESULTS}
        self.deciding = Histogram(
            "herder_scheduling_decision_duration_seconds", "How long a decision took.", registry=registry, buckets=SECONDS
        )
        self.waiting = Gauge("herder_pending_pods", "Pods that no node will have.", registry=registry)


_made: WeakKeyDictionary[CollectorRegistry, SchedulerMetrics] = WeakKeyDictionary()


def scheduler_metrics_of(registry: CollectorRegistry) -> SchedulerMetrics:
    made = _made.get(registry)
    if made is None:
        made = _made[registry] = SchedulerMetrics(registry)
    return made
