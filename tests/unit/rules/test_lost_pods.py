"""What becomes of pods whose node is in trouble."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.world import timestamp
from herder.rules.node_lifecycle import PodPlan, plan_pod, troubles
from herder.rules.plans import Delete
from tests.unit.rules.test_node_lifecycle import NOW, UNREACHABLE, Json, node, taint

GONE = Delete("p", "u", 0)
EVICTED = Delete("p", "u")


def pod(tolerations: Sequence[Json] = (), *, ready: str = "False", bound: float = NOW - 1000, **metadata: Any) -> Pod:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(bound)},
        {"type": "Ready", "status": ready, "reason": "Because"},
    ]
    whole = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", **metadata},
        "spec": {"nodeName": "n", "tolerations": list(tolerations)},
        "status": {"phase": "Running", "conditions": conditions},
    }
    return msgspec.convert(whole, Pod, strict=False)


def bears(seconds: int | None = None, key: str = UNREACHABLE) -> Json:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


def away(added: float | None = NOW, *more: Json) -> Node:
    return node(ready="Unknown", taints=[taint(UNREACHABLE, "NoExecute", added), *more])


def ended(moment: float = NOW) -> Json:
    return {"deletionTimestamp": timestamp(moment), "deletionGracePeriodSeconds": 30}


def test_a_pod_that_bears_nothing_leaves_at_once_and_is_told_why() -> None:
    plan = plan_pod(pod(), away(), 0.0, NOW)
    assert plan.delete == EVICTED
    assert [(one["type"], one["reason"]) for one in plan.conditions] == [("DisruptionTarget", "DeletionByTaintManager")]
    assert [one.reason for one in plan.events] == ["TaintManagerEviction"]


@pytest.mark.parametrize(
    ("tolerations", "left"),
    [
        ([bears(300)], 200.0),
        ([bears(300), bears()], 200.0),
        ([bears(), bears(300)], None),
        ([{"operator": "Exists"}], None),
    ],
)
def test_a_pod_stays_for_as_long_as_it_bears_with_its_node(tolerations: list[Json], left: float | None) -> None:
    assert plan_pod(pod(tolerations), away(NOW - 100), 0.0, NOW) == PodPlan(next_look=left)


def test_once_its_patience_is_over_it_leaves() -> None:
    assert plan_pod(pod([bears(300)]), away(NOW - 300), 0.0, NOW).delete == EVICTED
    assert plan_pod(pod([bears(0)]), away(NOW), 0.0, NOW).delete == EVICTED
    assert plan_pod(pod([bears(-1)]), away(NOW), 0.0, NOW).delete == EVICTED


def test_of_several_taints_the_one_that_is_borne_for_the_shortest_time_counts() -> None:
    tolerations = [bears(300), bears(50, "mine")]
    assert plan_pod(pod(tolerations), away(NOW, taint("mine", "NoExecute", NOW - 20)), 0.0, NOW).next_look == 30.0
    assert plan_pod(pod(tolerations), away(NOW, taint("other", "NoExecute", NOW)), 0.0, NOW).delete == EVICTED


def test_a_pod_that_came_later_has_all_of_its_time() -> None:
    assert plan_pod(pod([bears(300)], bound=NOW - 10), away(NOW - 290), 0.0, NOW).next_look == 290.0


def test_a_taint_without_a_time_counts_from_when_it_was_seen() -> None:
    assert plan_pod(pod([bears(300)]), away(None), 60.0, NOW).next_look == 240.0


def test_a_pod_of_a_node_that_is_away_is_not_ready_any_more() -> None:
    plan = plan_pod(pod([bears(300)], ready="True"), away(), 0.0, NOW)
    assert plan.conditions == ({"type": "Ready", "status": "False", "reason": "Because", "lastTransitionTime": timestamp(NOW)},)
    assert (plan.delete, plan.next_look) == (None, 300.0)
    assert [(one.reason, one.message) for one in plan.events] == [("NodeNotReady", "Node is not ready")]


def test_a_taint_on_a_node_that_is_well_leaves_its_pods_ready() -> None:
    well = node(taints=[taint("mine", "NoExecute", NOW)])
    assert plan_pod(pod([bears(key="mine")], ready="True"), well, 0.0, NOW) == PodPlan()


def test_a_pod_that_leaves_already_or_has_ended_is_not_evicted() -> None:
    assert plan_pod(pod(**ended()), away(), 0.0, NOW) == PodPlan()
    done = msgspec.convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}, Pod)
    assert plan_pod(done, away(), 0.0, NOW) == PodPlan()


def test_a_pod_on_a_node_that_does_not_answer_is_not_removed_before_somebody_vouches_for_it() -> None:
    vouched = taint(labels.OUT_OF_SERVICE_TAINT, "NoExecute")
    assert plan_pod(pod(**ended(NOW - 9999)), away(NOW - 9999), 9999.0, NOW) == PodPlan()
    assert plan_pod(pod(**ended()), away(NOW, vouched), 0.0, NOW) == PodPlan(delete=GONE)
    assert plan_pod(pod(), away(NOW, vouched), 0.0, NOW).delete == EVICTED


def test_a_node_that_says_that_it_is_well_ends_its_pods_itself() -> None:
    vouched = node(taints=[taint(labels.OUT_OF_SERVICE_TAINT, "NoExecute")])
    assert plan_pod(pod(**ended()), vouched, 0.0, NOW) == PodPlan()
    assert plan_pod(pod(), vouched, 0.0, NOW).delete == EVICTED


def test_pods_of_a_node_that_is_gone_are_removed_once_it_stays_away() -> None:
    assert plan_pod(pod(), None, 10.0, NOW) == PodPlan(next_look=30.0)
    assert plan_pod(pod(), None, 40.0, NOW) == PodPlan(delete=GONE, orphaned=True)


def test_only_nodes_in_trouble_are_looked_at() -> None:
    assert [troubles(one) for one in (node(), node(ready=""), node(taints=[taint("a")]))] == [False, False, False]
    assert [troubles(one) for one in (away(), node(ready="False"), node(taints=[taint("a", "NoExecute")]))] == [True, True, True]
