"""Decisions about autoscalers that a person can follow; thousands of others are compared in test_against_kubernetes.py."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api import builtin
from herder.rules.plans import moment, text_of

from .series import BEGIN, SELECTOR, played

Document = dict[str, Any]
CPU: Document = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
OLD = text_of(moment(BEGIN - 3600))


def pod(name: str, **status: Any) -> Document:
    """One that asks for a whole processor."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": OLD}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running", "startTime": OLD, "conditions": [ready], **status},
    }


def used(name: str, cpu: str, at: float = BEGIN) -> Document:
    containers = [{"name": "c", "usage": {"cpu": cpu}}]
    return {"metadata": {"name": name}, "timestamp": text_of(moment(at)), "window": "15s", "containers": containers}


def look(pods: list[Document], *cpu: str, after: float = 15) -> Document:
    """`cpu`: what each of the first pods uses; of the others nothing is known."""
    metrics = [used(one["metadata"]["name"], amount) for one, amount in zip(pods, cpu, strict=False)]
    return {"after": after, "selector": SELECTOR, "pods": pods, "metrics": metrics}


def play(replicas: int, *looks: Document, **spec: Any) -> list[Document]:
    whole: Document = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"maxReplicas": 100, "metrics": [CPU], **spec}}
    builtin.default("autoscaling", "HorizontalPodAutoscaler", whole)
    return played({"autoscaler": whole, "replicas": replicas, "looks": list(looks)})


def reason(answer: Document, kind: str) -> str:
    return next(one["reason"] for one in answer["status"]["conditions"] if one["type"] == kind)


PAIR = [pod("web-0"), pod("web-1")]


@pytest.mark.parametrize(
    ("cpu", "replicas"),
    [
        pytest.param(("500m", "500m"), 2, id="as much as they should"),
        pytest.param(("540m", "540m"), 2, id="a little more is close enough"),
        pytest.param(("750m", "750m"), 3, id="half as much again"),
        pytest.param(("990m", "990m"), 4, id="nearly twice as much"),
    ],
)
def test_there_are_as_many_as_use_what_they_should_on_average(cpu: tuple[str, str], replicas: int) -> None:
    (answer,) = play(2, look(PAIR, *cpu))
    assert answer["replicas"] == replicas


def test_no_more_than_twice_as_many_or_four_come_at_once() -> None:
    (answer,) = play(2, look(PAIR, "9", "9"))
    assert (answer["replicas"], reason(answer, "ScalingLimited")) == (4, "ScaleUpLimit")


def test_a_pod_of_which_nothing_is_known_keeps_the_number_from_falling_too_far() -> None:
    three = [*PAIR, pod("web-2")]
    (answer,) = play(3, look(three, "100m", "100m"), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    # As if it used all that it asks for: together 40 % of what is asked for, where 50 % is meant to be, which takes three.
    assert answer["replicas"] == 3
    (answer,) = play(3, look(three, "100m", "100m", "100m"), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    assert answer["replicas"] == 1


def test_a_pod_that_has_just_started_counts_as_idle_on_the_way_up() -> None:
    now = text_of(moment(BEGIN))
    young = pod("web-1", startTime=now, conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": now}])
    (answer,) = play(2, look([PAIR[0], young], "1", "5", after=0))
    assert answer["replicas"] == 2


def test_pods_that_go_or_have_failed_do_not_count() -> None:
    going = pod("web-1")
    going["metadata"]["deletionTimestamp"] = OLD
    (answer,) = play(2, look([PAIR[0], going, pod("web-2", phase="Failed")], "500m", "9", "9"))
    assert (answer["replicas"], reason(answer, "ScalingActive")) == (2, "ValidMetricFound")


def test_of_several_metrics_the_one_that_asks_for_the_most_counts() -> None:
    idle = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "10"}}}
    (answer,) = play(2, look(PAIR, "750m", "750m"), metrics=[idle, CPU])
    assert answer["replicas"] == 3


def test_a_metric_that_fails_keeps_the_number_from_falling_and_not_from_rising() -> None:
    broken = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}}
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    (down,) = play(2, look(PAIR, "10m", "10m"), metrics=[CPU, broken], behavior=at_once)
    assert (down["replicas"], reason(down, "ScalingActive")) == (2, "FailedGetResourceMetric")
    (up,) = play(2, look(PAIR, "750m", "750m"), metrics=[CPU, broken], behavior=at_once)
    assert up["replicas"] == 3


def test_a_window_on_the_way_up_waits_for_the_lowest_recommendation() -> None:
    busy = look(PAIR, "1", "1")
    answers = play(2, *[busy] * 6, behavior={"scaleUp": {"stabilizationWindowSeconds": 60}})
    assert [one["replicas"] for one in answers] == [2, 2, 2, 2, 4, 4]
    assert reason(answers[0], "AbleToScale") == "ScaleUpStabilized"


def test_a_policy_bounds_what_changes_within_its_period() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 30}
    answers = play(2, *[look(PAIR, "4", "4")] * 5, behavior={"scaleUp": {"policies": [policy]}})
    assert [one["replicas"] for one in answers] == [3, 3, 4, 4, 5]


def test_a_direction_that_is_disabled_is_not_taken() -> None:
    answers = play(2, look(PAIR, "4", "4"), behavior={"scaleUp": {"selectPolicy": "Disabled"}})
    assert (answers[0]["replicas"], reason(answers[0], "ScalingLimited")) == (2, "ScaleUpLimit")


def test_a_tolerance_of_its_own_counts_in_its_direction_alone() -> None:
    close = {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "0.9", "stabilizationWindowSeconds": 0}}
    (up,) = play(2, look(PAIR, "540m", "540m"), behavior=close)
    (down,) = play(2, look(PAIR, "100m", "100m"), behavior=close)
    assert (up["replicas"], down["replicas"]) == (3, 2)


def test_a_target_of_nothing_stays_and_one_out_of_bounds_is_brought_back() -> None:
    assert play(0, look([]))[0]["replicas"] == 0
    assert play(1, look([]), minReplicas=3)[0]["replicas"] == 3
    assert play(200, look([]))[0]["replicas"] == 100
