"""What every process shows of itself: processor time, memory, files and when it began (`process_*`), and of Python (`python_*`)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector


def measure_process(registry: CollectorRegistry) -> None:
    """Read when asked for."""
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
