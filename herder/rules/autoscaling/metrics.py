"""One number of all metrics of an autoscaler: the highest. One that fails counts for nothing, and keeps us from going down."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import reasons
from herder.api.core.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingRules, MetricSpec, ResourceMetricSource
from herder.api.core.pods import Pod
from herder.api.quantity import BINARY_SI, DECIMAL_SI, of_milli, parse_quantity
from herder.rules.autoscaling.replica_calculator import (
    DEFAULT_TOLERANCE,
    Calculated,
    NotCalculated,
    Tolerances,
    calculate_average,
    calculate_utilization,
)
from herder.rules.autoscaling.snapshot import Usage
from herder.rules.plans import Document, Event


class Proposed(msgspec.Struct, frozen=True):
    """`replicas` is None where the metrics say nothing that may be done. `problem`: what failed, also where others did not."""

    replicas: int | None
    # The metric that asks for the most, in words.
    metric: str = ""
    statuses: tuple[Document, ...] = ()
    problem: str = ""
    # What ScalingActive says: the reason and the message.
    reason: str = reasons.VALID_METRIC_FOUND
    message: str = ""
    events: tuple[Event, ...] = ()


def tolerances_of(behavior: HorizontalPodAutoscalerBehavior | None) -> Tolerances:
    if behavior is None:
        return Tolerances()
    return Tolerances(_tolerance(behavior.scale_down), _tolerance(behavior.scale_up))


def _tolerance(rules: HPAScalingRules | None) -> float:
    if rules is None or rules.tolerance is None:
        return DEFAULT_TOLERANCE
    return parse_quantity(rules.tolerance).nanos / 10**9


def propose(
    metrics: tuple[MetricSpec, ...],
    current: int,
    pods: tuple[Pod, ...],
    usage: Mapping[str, Usage] | str,
    tolerances: Tolerances,
    now: float,
) -> Proposed:
    replicas, metric = 0, ""
    statuses: list[Document] = []
    failures: list[tuple[str, str]] = []
    for source in (one.resource or ResourceMetricSource() for one in metrics):
        try:
            found = _calculated(source, current, pods, usage, tolerances, now)
        except NotCalculated as error:
            failures.append((source.name, f"failed to get {source.name} {_measured(source)}: {error}"))
            # Kubernetes keeps the place of a metric of which nothing is known.
            statuses.append({"type": ""})
            continue
        statuses.append(_status(source, found))
        if replicas == 0 or found.replicas > replicas:
            replicas, metric = found.replicas, _words(source)
    events = tuple(Event("Warning", reasons.FAILED_GET_RESOURCE_METRIC, message) for _, message in failures)
    problem = _problem(failures, len(metrics))
    if len(failures) == len(metrics) or (failures and replicas < current):
        message = f"the HPA was unable to compute the replica count: {failures[0][1]}" if failures else ""
        reason = reasons.FAILED_GET_RESOURCE_METRIC
        return Proposed(None, "", tuple(statuses), problem, reason, message, events)
    message = f"the HPA was able to successfully calculate a replica count from {metric}"
    return Proposed(replicas, metric, tuple(statuses), problem, message=message, events=events)


def _calculated(
    source: ResourceMetricSource,
    current: int,
    pods: tuple[Pod, ...],
    usage: Mapping[str, Usage] | str,
    tolerances: Tolerances,
    now: float,
) -> Calculated:
    if isinstance(usage, str):
        raise NotCalculated(f"unable to get metrics for resource {source.name}: {usage}")
    target = source.target
    if target.average_value is not None:
        wanted = parse_quantity(target.average_value).milli_value()
        return calculate_average(current, wanted, source.name, pods, usage, tolerances, now)
    return calculate_utilization(current, target.average_utilization or 1, source.name, pods, usage, tolerances, now)


def _measured(source: ResourceMetricSource) -> str:
    return "usage" if source.target.average_value is not None else "utilization"


def _words(source: ResourceMetricSource) -> str:
    if source.target.average_value is not None:
        return f"{source.name} resource"
    return f"{source.name} resource utilization (percentage of request)"


def _problem(failures: list[tuple[str, str]], metrics: int) -> str:
    if not failures:
        return ""
    name, message = failures[0]
    first = f"failed to get {name} resource metric value: {message}"
    return f"invalid metrics ({len(failures)} invalid out of {metrics}), first error is: {first}"


def _status(source: ResourceMetricSource, found: Calculated) -> Document:
    form = BINARY_SI if source.name == "memory" else DECIMAL_SI
    current: Document = {"averageValue": str(of_milli(found.average, form))}
    if found.utilization is not None:
        current["averageUtilization"] = found.utilization
    return {"type": "Resource", "resource": {"name": source.name, "current": current}}
