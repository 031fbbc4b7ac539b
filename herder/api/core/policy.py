"""Who may be disturbed and who goes first: disruption budgets, Kruise's too, and priority classes."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Object
from herder.api.meta import LabelSelector
from herder.api.views import IntOrName, Time, View


class PodDisruptionBudgetSpec(View, frozen=True, kw_only=True):
    min_available: IntOrName | None = None
    max_unavailable: IntOrName | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    observed_generation: int | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodDisruptionBudgetStatus(View, frozen=True, kw_only=True):
    observed_generation: int | None = None
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, Time | None] = field(default_factory=dict)
    conditions: tuple[BudgetCondition, ...] = ()


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class TargetReference(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class PodUnavailableBudgetSpec(View, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    target_ref: TargetReference | None = None


class PodUnavailableBudgetStatus(View, frozen=True, kw_only=True):
    observed_generation: int | None = None
    disrupted_pods: dict[str, Time | None] = field(default_factory=dict)
    unavailable_pods: dict[str, Time | None] = field(default_factory=dict)
    unavailable_allowed: int = 0
    current_available: int = 0
    desired_available: int = 0


class PodUnavailableBudget(Object, frozen=True, kw_only=True):
    """Of Kruise (policy.kruise.io): like a disruption budget, and about every end of a pod."""

    spec: PodUnavailableBudgetSpec = PodUnavailableBudgetSpec()
    status: PodUnavailableBudgetStatus = PodUnavailableBudgetStatus()


class PriorityClass(Object, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
