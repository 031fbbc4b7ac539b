"""What caches count, for Prometheus. Every series is there from the start: a zero is news too."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge

# How a list ended: all there, older than what we had, history given up meanwhile, or no (whole) answer.
LISTED, STALE, EXPIRED, FAILED = "listed", "stale", "expired", "failed"
# How a watch ended: by the server, broken off, its history given up, or nothing heard for too long.
ENDED, BROKEN, SILENT = "ended", "broken", "silent"
LISTS = (LISTED, STALE, EXPIRED, FAILED)
WATCHES = (ENDED, BROKEN, EXPIRED, SILENT)
EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


class CacheMetrics:
    """One for each registry; caches of many resources share it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        names = ("resource", "selection")
        self.lists = Counter("herder_cache_lists", "Lists by how they ended.", [*names, "result"], registry=registry)
        self.watches = Counter("herder_cache_watch_ends", "Watches by how they ended.", [*names, "result"], registry=registry)
        self.events = Counter("herder_cache_events", "Events of watches by type.", [*names, "type"], registry=registry)
        self.repeated = Counter("herder_cache_repeated_events", "Events that were known already.", names, registry=registry)
        self.unreadable = Counter("herder_cache_unreadable", "States of objects that cannot be read.", names, registry=registry)
        self.objects = Gauge("herder_cache_objects", "Objects held.", names, registry=registry)
        self.seen = Gauge("herder_cache_resource_version", "The resourceVersion that was reached.", names, registry=registry)

    def of(self, resource: str, selection: str) -> Counts:
        return Counts(self, resource, selection)


_made: WeakKeyDictionary[CollectorRegistry, CacheMetrics] = WeakKeyDictionary()


def cache_metrics_of(registry: CollectorRegistry | None) -> CacheMetrics:
    """Made once for a registry: a process that leads a second time, with new caches, goes on counting."""
    registry = registry or CollectorRegistry()
    made = _made.get(registry)
    if made is None:
        made = _made[registry] = CacheMetrics(registry)
    return made


class Counts:
    """The series of one cache. Looking up a labelled child costs more than counting: they are kept."""

    def __init__(self, metrics: CacheMetrics, *names: str) -> None:
        self._metrics = metrics
        self._names = names
        self.lists = {result: metrics.lists.labels(*names, result) for result in LISTS}
        self.watches = {result: metrics.watches.labels(*names, result) for result in WATCHES}
        self.events = {kind: metrics.events.labels(*names, kind) for kind in EVENTS}
        self.repeated = metrics.repeated.labels(*names)
        self.unreadable = metrics.unreadable.labels(*names)

    def measure(self, objects: Callable[[], float], seen: Callable[[], float]) -> None:
        """Read when asked for: nothing to do for each event."""
        self._metrics.objects.labels(*self._names).set_function(objects)
        self._metrics.seen.labels(*self._names).set_function(seen)

    def stop_measuring(self) -> None:
        """The gauges go, and with them what they were read from: a cache of a term that is over is garbage."""
        for gauge in (self._metrics.objects, self._metrics.seen):
            gauge.remove(*self._names)
