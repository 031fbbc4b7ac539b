"""What `herder pool status` repeats of an autoscaler."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import HorizontalPodAutoscaler
from herder.rules.pools.autoscaler import last_words

from .things import pool


def autoscaler(name: str = "busy", target: str = "web", **status: Any) -> HorizontalPodAutoscaler:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": target}
    spec = {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 6}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status}, HorizontalPodAutoscaler
    )


def condition(kind: str, status: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "R", "message": message}


def test_its_number_its_bounds_what_it_saw_and_what_holds_it() -> None:
    used = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 120, "averageValue": "1200m"}}}]
    fine = [condition("AbleToScale", "True", "ready"), condition("ScalingActive", "True", "")]
    limited = [*fine, condition("ScalingLimited", "True", "more than the maximum")]
    said = last_words(
        pool(), [autoscaler(desiredReplicas=6, currentMetrics=used, conditions=limited, lastScaleTime="2026-01-02T03:04:05Z")]
    )
    assert said == (
        "autoscaler busy: wants 6, between 2 and 6, last scaled 2026-01-02T03:04:05Z; cpu at 120%; more than the maximum",
    )
    blind = [fine[0], condition("ScalingActive", "False", "no metrics yet")]
    assert last_words(pool(), [autoscaler(desiredReplicas=2, conditions=blind)]) == (
        "autoscaler busy: wants 2, between 2 and 6; no metrics yet",
    )
    assert last_words(pool(), [autoscaler()]) == ("autoscaler busy: has not looked yet, between 2 and 6",)


def test_those_of_others_are_left_out() -> None:
    assert last_words(pool(), [autoscaler(target="other")]) == ()
