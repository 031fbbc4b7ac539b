"""What the webhook counts. Every outcome exists from zero: an alert on one that never happened must find it."""

from __future__ import annotations

from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

from herder.api.registry import KINDS
from herder.kube.webhook.reviews import Question

Result = Literal["allowed", "changed", "refused", "unreadable", "failed"]
RESULTS: Final = ("allowed", "changed", "refused", "failed")
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")
UNKNOWN: Final = "unknown"


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["resource", "operation", "result"]
        self._requests = Counter("herder_webhook_requests", "Reviews that were answered.", labels, registry=registry)
        self._ends = Gauge(
            "herder_webhook_certificate_end_seconds", "When the certificate that is shown ends, since the epoch.", registry=registry
        )
        self._resources = frozenset(info.crd_name for info in KINDS)
        for resource in sorted(self._resources):
            for operation in OPERATIONS:
                for result in RESULTS:
                    self._requests.labels(resource, operation, result)
        self._requests.labels(UNKNOWN, UNKNOWN, "unreadable")

    def count(self, question: Question | None, result: Result) -> None:
        """What a stranger may make up is never a label."""
        if question is None:
            self._requests.labels(UNKNOWN, UNKNOWN, result).inc()
            return
        name = f"{question.resource.resource}.{question.resource.group}"
        self._requests.labels(name if name in self._resources else UNKNOWN, question.operation, result).inc()

    def shows(self, ends: float) -> None:
        self._ends.set(ends)
