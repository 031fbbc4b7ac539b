"""What an autoscaler does next: the number that it sets, what it says of itself, and what it remembers."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.core.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, HPAScalingPolicy, HPAScalingRules
from herder.rules.autoscaling.behavior import Bounds, limited, limited_by_behavior
from herder.rules.autoscaling.conditions import Conditions
from herder.rules.autoscaling.metrics import Proposed, propose, tolerances_of
from herder.rules.autoscaling.snapshot import AutoscalerSnapshot, NoSelector, Target
from herder.rules.autoscaling.stabilization import DOWNSCALE_WINDOW, History, stabilize, stabilize_with_behavior
from herder.rules.plans import Document, Event, moment, plain, text_of, without_nothing

# Every so many seconds, as kube-controller-manager does by default.
SYNC_PERIOD = 15.0


class Rescale(msgspec.Struct, frozen=True):
    before: int
    replicas: int
    reason: str


class AutoscalerPlan(msgspec.Struct, frozen=True):
    """`status` and `history` are as they are once it is carried out."""

    status: Document
    history: History
    events: tuple[Event, ...] = ()
    # What the target shall have, from how many on, and why; None where it stays.
    rescale: Rescale | None = None
    next_look: float = SYNC_PERIOD


def plan_autoscaler(snapshot: AutoscalerSnapshot, history: History, now: float) -> AutoscalerPlan:
    autoscaler, target = snapshot.autoscaler, snapshot.target
    conditions = Conditions(autoscaler)
    if isinstance(target, str):
        message = f"the HPA controller was unable to get the target's current scale: {target}"
        conditions.able(False, reasons.FAILED_GET_SCALE, message)
        told = Event("Warning", reasons.FAILED_GET_SCALE, target)
        return AutoscalerPlan(_as_it_was(autoscaler.status, conditions, now), history, (told,))
    conditions.able(True, reasons.SUCCEEDED_GET_SCALE, "the HPA controller was able to get the target's current scale")
    look = _Look(autoscaler, target, conditions, history.begun(target.replicas, now), now)
    bounds, current = look.bounds, target.replicas
    if current == 0:
        message = "scaling is disabled since the replica count of the target is zero"
        conditions.active(False, reasons.SCALING_DISABLED, message)
        return look.stays(())
    if current > bounds.most:
        return look.goes(Rescale(current, bounds.most, "Current number of replicas above Spec.MaxReplicas"), ())
    if current < bounds.least:
        return look.goes(Rescale(current, bounds.least, "Current number of replicas below Spec.MinReplicas"), ())
    return _by_metrics(look, snapshot)


def _by_metrics(look: _Look, snapshot: AutoscalerSnapshot) -> AutoscalerPlan:
    current, pods = look.target.replicas, snapshot.pods
    if isinstance(pods, NoSelector):
        look.conditions.active(False, pods.reason, pods.message)
        failed = Event("Warning", reasons.FAILED_COMPUTE_METRICS_REPLICAS, pods.event_message)
        return look.gives_up((), (Event("Warning", pods.event, pods.event_message), failed))
    spec = look.autoscaler.spec
    found = propose(spec.metrics, current, pods, snapshot.usage, tolerances_of(spec.behavior), look.now)
    look.conditions.active(found.replicas is not None, found.reason, found.message)
    if found.replicas is None:
        failed = Event("Warning", reasons.FAILED_COMPUTE_METRICS_REPLICAS, found.problem)
        return look.gives_up(found.statuses, (*found.events, failed))
    return _within_limits(look, found, found.replicas)


def _within_limits(look: _Look, found: Proposed, proposed: int) -> AutoscalerPlan:
    current = look.target.replicas
    replicas = look.normalized(proposed)
    if replicas == current:
        return look.stays(found.statuses, found.events)
    reason = "All metrics below target" if proposed < current else f"{found.metric} above target" if proposed > current else ""
    return look.goes(Rescale(current, replicas, reason), found.statuses, found.events)


class _Look:
    """One look at one autoscaler whose target was found."""

    def __init__(
        self, autoscaler: HorizontalPodAutoscaler, target: Target, conditions: Conditions, history: History, now: float
    ) -> None:
        self.autoscaler = autoscaler
        self.target = target
        self.conditions = conditions
        self.history = history
        self.now = now
        spec = autoscaler.spec
        self.bounds = Bounds(1 if spec.min_replicas is None else spec.min_replicas, spec.max_replicas)

    def normalized(self, desired: int) -> int:
        """As far as it may go now; and what is to be said and remembered of it."""
        current, behavior, now = self.target.replicas, self.autoscaler.spec.behavior, self.now
        if behavior is None:
            stable, why = stabilize(self.history, desired, now)
            self.history = self.history.recommended(desired, DOWNSCALE_WINDOW, now)
            replicas, limit = limited(current, stable, self.bounds)
        else:
            up, down = behavior.scale_up or _UP, behavior.scale_down or _DOWN
            windows = up.stabilization_window_seconds or 0, _down_window(down)
            stable, why = stabilize_with_behavior(self.history, current, desired, *windows, now)
            self.history = self.history.recommended(desired, max(windows), now)
            replicas, limit = limited_by_behavior(current, stable, self.bounds, up, down, self.history, now)
        self.conditions.able(True, *(why or (reasons.READY_FOR_NEW_SCALE, "recommended size matches current size")))
        self.conditions.limited(replicas != stable, *limit)
        return replicas

    def stays(self, statuses: tuple[Document, ...], events: tuple[Event, ...] = ()) -> AutoscalerPlan:
        return AutoscalerPlan(self._status(self.target.replicas, statuses), self.history, events)

    def gives_up(self, statuses: tuple[Document, ...], events: tuple[Event, ...]) -> AutoscalerPlan:
        """What it wanted last is still what it says."""
        return AutoscalerPlan(self._status(self.autoscaler.status.desired_replicas, statuses), self.history, events)

    def goes(self, rescale: Rescale, statuses: tuple[Document, ...], events: tuple[Event, ...] = ()) -> AutoscalerPlan:
        number = rescale.replicas
        message = f"the HPA controller was able to update the target scale to {number}"
        self.conditions.able(True, reasons.SUCCEEDED_RESCALE, message)
        told = Event("Normal", reasons.SUCCESSFUL_RESCALE, f"New size: {number}; reason: {rescale.reason}")
        status = self._status(number, statuses) | {"lastScaleTime": text_of(moment(self.now))}
        return AutoscalerPlan(status, self._history_of(rescale), (*events, told), rescale)

    def _history_of(self, rescale: Rescale) -> History:
        behavior, before, after = self.autoscaler.spec.behavior, rescale.before, rescale.replicas
        if behavior is None:
            return self.history
        rules = (behavior.scale_up or _UP) if after > before else (behavior.scale_down or _DOWN)
        return self.history.scaled(before, after, rules, self.now)

    def _status(self, desired: int, statuses: tuple[Document, ...]) -> Document:
        known = self.autoscaler.status
        return _status(known, self.target.replicas, desired, list(statuses), self.conditions.documents(self.now))


def failed_rescale(snapshot: AutoscalerSnapshot, history: History, plan: AutoscalerPlan, why: str, now: float) -> AutoscalerPlan:
    """The same plan where the target could not be scaled: it says so, and remembers what it recommended, but no change.
    `history`: as it was before the plan."""
    rescale, before = plan.rescale, snapshot.autoscaler.status
    if rescale is None:
        return plan
    conditions = Conditions(snapshot.autoscaler)
    conditions.able(False, reasons.FAILED_UPDATE_SCALE, f"the HPA controller was unable to update the target scale: {why}")
    (able,) = (one for one in conditions.documents(now) if one["type"] == reasons.ABLE_TO_SCALE)
    others = [one for one in plan.status["conditions"] if one["type"] != reasons.ABLE_TO_SCALE]
    metrics = plan.status.get("currentMetrics", [])
    status = _status(before, rescale.before, before.desired_replicas, metrics, [able, *others])
    told = Event("Warning", reasons.FAILED_RESCALE, f"New size: {rescale.replicas}; reason: {rescale.reason}; error: {why}")
    kept = msgspec.structs.replace(plan.history, ups=history.ups, downs=history.downs)
    return AutoscalerPlan(status, kept, (*plan.events[:-1], told))


def _status(
    known: HorizontalPodAutoscalerStatus, current: int, desired: int, metrics: list[Document], conditions: list[Document]
) -> Document:
    last = known.last_scale_time
    return without_nothing(
        {
            "lastScaleTime": None if last is None else text_of(last),
            "currentReplicas": current or None,
            "desiredReplicas": desired,
            "currentMetrics": metrics or None,
            "conditions": conditions,
        }
    )


def _as_it_was(known: HorizontalPodAutoscalerStatus, conditions: Conditions, now: float) -> Document:
    metrics = [found for one in known.current_metrics if (found := plain(one)) is not None]
    return _status(known, known.current_replicas, known.desired_replicas, metrics, conditions.documents(now))


def _down_window(rules: HPAScalingRules) -> int:
    return DOWNSCALE_WINDOW if rules.stabilization_window_seconds is None else rules.stabilization_window_seconds


# What the API server fills in: for objects that were stored otherwise.
_UP = HPAScalingRules(
    select_policy="Max",
    policies=(
        HPAScalingPolicy(type="Pods", value=4, period_seconds=15),
        HPAScalingPolicy(type="Percent", value=100, period_seconds=15),
    ),
)
_DOWN = HPAScalingRules(select_policy="Max", policies=(HPAScalingPolicy(type="Percent", value=100, period_seconds=15),))
