"""Autoscalers: how many pods of something there should be, by what its pods use."""

from __future__ import annotations

from typing import Any

from msgspec import field

from herder.api.core.base import Object
from herder.api.core.workloads import WorkloadCondition
from herder.api.views import Quantity, Time, View


class CrossVersionObjectReference(View, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricTarget(View, frozen=True, kw_only=True):
    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class ResourceMetricSource(View, frozen=True, kw_only=True):
    name: str = ""
    target: MetricTarget = MetricTarget()


class MetricSpec(View, frozen=True, kw_only=True):
    """Only metrics of the type Resource are accepted; the others are here to be refused by their name."""

    type: str = ""
    resource: ResourceMetricSource | None = None
    container_resource: dict[str, Any] | None = None
    object: dict[str, Any] | None = None
    pods: dict[str, Any] | None = None
    external: dict[str, Any] | None = None


class HPAScalingPolicy(View, frozen=True, kw_only=True):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class HPAScalingRules(View, frozen=True, kw_only=True):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[HPAScalingPolicy, ...] = ()
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(View, frozen=True, kw_only=True):
    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class HorizontalPodAutoscalerSpec(View, frozen=True, kw_only=True):
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    behavior: HorizontalPodAutoscalerBehavior | None = None


class MetricValueStatus(View, frozen=True, kw_only=True):
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class ResourceMetricStatus(View, frozen=True, kw_only=True):
    name: str = ""
    current: MetricValueStatus = MetricValueStatus()


class MetricStatus(View, frozen=True, kw_only=True):
    type: str = ""
    resource: ResourceMetricStatus | None = None


class HorizontalPodAutoscalerStatus(View, frozen=True, kw_only=True):
    observed_generation: int | None = None
    last_scale_time: Time | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus, ...] = ()
    conditions: tuple[WorkloadCondition, ...] = ()


class HorizontalPodAutoscaler(Object, frozen=True, kw_only=True):
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


class ContainerMetrics(View, frozen=True, kw_only=True):
    name: str = ""
    usage: dict[str, Quantity] = field(default_factory=dict[str, Quantity])


class PodMetrics(Object, frozen=True, kw_only=True):
    """Of metrics.k8s.io: what the containers of a pod used, over the window before the timestamp."""

    timestamp: Time | None = None
    window: str = ""
    containers: tuple[ContainerMetrics, ...] = ()
