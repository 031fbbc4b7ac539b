"""What the engine counts about itself, for Prometheus. Its own registry: two engines in one process do not mix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from herder.kit.process_metrics import measure_process

if TYPE_CHECKING:
    from herder.server.engine import Engine

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    def __init__(self, engine: Engine) -> None:
        self._registry = CollectorRegistry()
        measure_process(self._registry)
        self._requests = Counter(
            "herder_apiserver_requests",
            "Requests by verb, resource and status code.",
            ["verb", "resource", "code"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "herder_apiserver_request_duration_seconds",
            "Time to answer, watches left out.",
            ["verb"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._certificates = Gauge(
            "herder_certificate_expiration_timestamp_seconds",
            "When certificates end that are shown; that of the authority is not renewed.",
            ["certificate"],
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], Counter] = {}
        self._timers: dict[str, Histogram] = {}
        self._registry.register(_StoreNumbers(engine))

    def count(self, verb: str, resource: str, code: int, seconds: float | None) -> None:
        # Looking up a labelled child costs more than counting: keep it.
        key = (verb, resource, code)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._requests.labels(verb, resource, str(code))
        child.inc()
        if seconds is not None:
            timer = self._timers.get(verb)
            if timer is None:
                timer = self._timers[verb] = self._seconds.labels(verb)
            timer.observe(seconds)

    def certificate_ends(self, certificate: str, at: float) -> None:
        self._certificates.labels(certificate).set(at)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _StoreNumbers(Collector):
    """Read when asked for: nothing is counted twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        store = self._engine.store
        objects = GaugeMetricFamily("herder_store_objects", "Stored objects by kind.", labels=["resource"])
        for kind in sorted(store.kinds()):
            objects.add_metric([kind], len(store.table(kind).records))
        yield objects
        yield GaugeMetricFamily("herder_store_revision", "The newest resourceVersion.", store.revision)
        yield GaugeMetricFamily("herder_store_compacted_revision", "History before this one is no longer whole.", store.compacted)
        yield GaugeMetricFamily("herder_store_superseded_rows", "Old versions that are still kept.", store.superseded())
        yield GaugeMetricFamily("herder_apiserver_watchers", "Open watches.", len(self._engine.hub.watchers()))
