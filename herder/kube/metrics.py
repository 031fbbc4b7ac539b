"""What the controller kit counts. Names and labels of queues and of leader election are client-go's, so that dashboards fit.

The families of one registry are made once: a process that leads a second time goes on counting where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Protocol
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS = (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
# The four answers of a reconcile; of errors those that pass, and those that took too long, are told apart.
RESULTS = ("done", "again", "later", "error", "passing", "timeout")
ELECTION_RESULTS = ("acquired", "lost", "released")
EVENT_RESULTS = ("created", "patched", "limited", "overflowed", "refused", "lost")


class QueueNumbers(Sized, Protocol):
    """What is read from a queue when somebody asks."""

    def working_seconds(self) -> list[float]: ...


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.adds = Counter("workqueue_adds", "Keys that were added.", ["name"], registry=registry)
        self.retries = Counter("workqueue_retries", "Keys that were added with backoff.", ["name"], registry=registry)
        self.queued = _seconds("workqueue_queue_duration_seconds", "How long keys waited for a worker.", "name", registry)
        self.worked = _seconds("workqueue_work_duration_seconds", "How long workers were busy with a key.", "name", registry)
        self.reconciles = Counter(
            "herder_reconcile", "Reconciles by controller and result.", ["controller", "result"], registry=registry
        )
        self.reconciled = _seconds("herder_reconcile_duration_seconds", "How long a reconcile took.", "controller", registry)
        self.leading = Gauge(
            "leader_election_master_status", "1 for the one that leads, 0 for those that stand by.", ["name"], registry=registry
        )
        self.elections = Counter(
            "herder_leader_elections", "Terms that began and how they ended.", ["name", "result"], registry=registry
        )
        self.events = Counter("herder_events", "Events by what became of them.", ["component", "result"], registry=registry)
        self.queues = _Queues()
        registry.register(self.queues)


_made: WeakKeyDictionary[CollectorRegistry, Metrics] = WeakKeyDictionary()


def metrics_of(registry: CollectorRegistry | None) -> Metrics:
    """Without a registry they are counted for nobody."""
    registry = registry or CollectorRegistry()
    made = _made.get(registry)
    if made is None:
        made = _made[registry] = Metrics(registry)
    return made


class _Queues(Collector):
    """Read when asked for. Queues of one name, such as those of several nodes, count together. A queue whose term is over is
    forgotten: what still lies in it waits for nobody."""

    def __init__(self) -> None:
        self._queues: dict[str, list[QueueNumbers]] = {}

    def watch(self, name: str, queue: QueueNumbers) -> None:
        self._queues.setdefault(name, []).append(queue)

    def forget(self, name: str, queue: QueueNumbers) -> None:
        remaining = [other for other in self._queues.get(name, ()) if other is not queue]
        if remaining:
            self._queues[name] = remaining
        else:
            self._queues.pop(name, None)

    def collect(self) -> Iterable[Metric]:
        depth = GaugeMetricFamily("workqueue_depth", "Keys that wait for a worker.", labels=["name"])
        unfinished = GaugeMetricFamily("workqueue_unfinished_work_seconds", "Seconds of work in progress.", labels=["name"])
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "How long the longest of it has been going on.", labels=["name"]
        )
        for name, queues in self._queues.items():
            seconds = [one for queue in queues for one in queue.working_seconds()]
            depth.add_metric([name], sum(map(len, queues)))
            unfinished.add_metric([name], sum(seconds))
            longest.add_metric([name], max(seconds, default=0.0))
        return (depth, unfinished, longest)


def _seconds(name: str, text: str, label: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, text, [label], registry=registry, buckets=SECONDS)
