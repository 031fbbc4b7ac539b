"""What follows from the silence of nodes: conditions, taints, and who is emptied when."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from herder.api.core import Node
from herder.api.world import timestamp
from herder.rules.node_lifecycle import NodePlan, OutagePlan, Patience, plan_node, plan_outages
from herder.rules.plans import Document

NOW = 1_900_000_000.0
Json = dict[str, Any]
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"


def node(
    name: str = "n", ready: str = "True", taints: Sequence[Json] = (), zone: str = "", since: float = NOW, **spec: Any
) -> Node:
    times = {"lastHeartbeatTime": timestamp(NOW - 9), "lastTransitionTime": timestamp(since)}
    conditions = (
        [{"type": "Ready", "status": ready, **times}, {"type": "DiskPressure", "status": "False", **times}] if ready else []
    )
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    whole = {
        "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": timestamp(NOW - 100)},
        "spec": {"taints": list(taints), **spec},
        "status": {"conditions": conditions},
    }
    return msgspec.convert(whole, Node, strict=False)


def taint(key: str, effect: str = "NoSchedule", added: float | None = None) -> Json:
    return {"key": key, "effect": effect, **({"timeAdded": timestamp(added)} if added is not None else {})}


def asked(one: Node, silent: float = 0.0, lease: int = 40) -> NodePlan:
    return plan_node(one, silent, lease, Patience(), NOW)


def keys(taints: list[Document] | None) -> list[tuple[str, str]] | None:
    return None if taints is None else [(one["key"], one["effect"]) for one in taints]


def test_a_node_that_was_heard_of_is_left_alone_until_it_could_be_silent_for_too_long() -> None:
    assert asked(node(), silent=20.0) == NodePlan(next_look=30.0)


def test_a_silent_node_is_unknown_in_all_that_its_agent_tells() -> None:
    plan = asked(node(), silent=50.0)
    assert [(one["type"], one["status"], one["reason"]) for one in plan.conditions] == [
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("MemoryPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("DiskPressure", "Unknown", "NodeStatusUnknown"),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
    ]
    assert plan.conditions[0]["message"] == "Kubelet stopped posting node status."
    assert plan.conditions[0]["lastHeartbeatTime"] == timestamp(NOW - 9)
    assert plan.conditions[0]["lastTransitionTime"] == timestamp(NOW)
    assert [one.reason for one in plan.events] == ["NodeNotReady"]


def test_silence_is_told_once() -> None:
    unknown = msgspec.structs.replace(node(ready="Unknown"))
    plan = asked(unknown, silent=500.0)
    assert plan.events == ()


def test_a_node_whose_lease_is_good_for_longer_may_be_silent_for_longer() -> None:
    assert asked(node(), silent=300.0, lease=400) == NodePlan(next_look=100.0)
    assert asked(node(), silent=400.0, lease=400).conditions


def test_a_node_that_never_said_anything_may_take_a_minute_to_start() -> None:
    assert asked(node(ready=""), silent=55.0) == NodePlan(next_look=5.0)
    assert asked(node(ready=""), silent=60.0).conditions[0]["reason"] == "NodeStatusNeverUpdated"


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (node(ready="Unknown"), [(UNREACHABLE, "NoSchedule")]),
        (node(ready="False"), [(NOT_READY, "NoSchedule")]),
        (node(unschedulable=True), [("node.kubernetes.io/unschedulable", "NoSchedule")]),
        (node(taints=[taint("node.kubernetes.io/unschedulable")]), []),
        (node(taints=[taint("mine"), taint(UNREACHABLE), taint(UNREACHABLE, "NoExecute")]), [("mine", "NoSchedule")]),
        (
            node(ready="False", taints=[taint(UNREACHABLE), taint(UNREACHABLE, "NoExecute")]),
            [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")],
        ),
        (node(ready="Unknown", taints=[taint(UNREACHABLE), taint("mine", "NoExecute")]), None),
        (node(taints=[taint(UNREACHABLE, "PreferNoSchedule")]), None),
        (node(), None),
    ],
)
def test_taints_follow_from_conditions_and_cordons_and_those_of_others_stay(
    one: Node, wanted: list[tuple[str, str]] | None
) -> None:
    assert keys(asked(one).taints) == wanted


def test_a_taint_that_stays_keeps_its_value_and_its_time() -> None:
    mine = {**taint("mine", "NoExecute", NOW - 77), "value": "v"}
    plan = asked(node(unschedulable=True, taints=[mine]))
    assert plan.taints is not None
    assert plan.taints[0] == mine
    assert plan.taints[1]["timeAdded"] == timestamp(NOW)


# --- who is emptied --------------------------------------------------------------------------------------------------------------


def some(count: int, ready: str, zone: str = "", **more: Any) -> list[Node]:
    return [node(f"{zone}{ready}-{number:03}", ready, zone=zone, **more) for number in range(count)]


def emptied_at(when: float) -> list[Json]:
    return [taint(UNREACHABLE, "NoExecute", when)]


def test_a_node_that_is_away_among_others_that_are_not_is_emptied() -> None:
    assert plan_outages([*some(2, "True"), *some(1, "Unknown")], NOW) == OutagePlan(empty=("Unknown-000",))
    assert plan_outages([*some(2, "True"), *some(1, "False")], NOW) == OutagePlan(empty=("False-000",))


def test_the_one_that_has_been_away_for_longest_goes_first_and_the_next_ten_seconds_later() -> None:
    away = [node("b", "Unknown", since=NOW - 5), node("a", "Unknown", since=NOW - 1)]
    assert plan_outages([*some(5, "True"), *away], NOW) == OutagePlan(empty=("b",), next_look=10.0)
    gone = node("b", "Unknown", taints=emptied_at(NOW - 4))
    assert plan_outages([*some(5, "True"), gone, away[1]], NOW) == OutagePlan(next_look=6.0)


def test_a_clock_that_was_turned_back_makes_nobody_wait_for_longer() -> None:
    gone = node("b", "Unknown", taints=emptied_at(NOW + 3600))
    assert plan_outages([*some(5, "True"), gone, *some(1, "Unknown")], NOW) == OutagePlan(next_look=10.0)


def test_nobody_is_emptied_when_all_are_away_and_those_that_were_are_spared() -> None:
    away = [*some(3, "Unknown"), node("gone", "Unknown", taints=emptied_at(NOW - 60))]
    assert plan_outages(away, NOW) == OutagePlan(spare=("gone",))


def test_a_zone_that_is_away_as_a_whole_is_emptied_while_another_is_there() -> None:
    plan = plan_outages([*some(3, "Unknown", "east"), *some(1, "True", "west")], NOW)
    assert plan == OutagePlan(empty=("eastUnknown-000",), next_look=10.0)


@pytest.mark.parametrize(
    ("well", "away", "pause"), [(2, 2, 10.0), (2, 3, None), (3, 3, 10.0), (20, 30, None), (21, 30, 100.0), (40, 30, 10.0)]
)
def test_where_most_are_away_it_goes_slowly_and_in_a_small_zone_not_at_all(well: int, away: int, pause: float | None) -> None:
    plan = plan_outages([*some(well, "True"), *some(away, "Unknown")], NOW)
    assert plan.next_look == pause
    assert len(plan.empty) == (0 if pause is None else 1)


def test_a_node_that_never_said_anything_counts_for_neither_side() -> None:
    assert plan_outages([*some(1, "Unknown"), *some(3, "")], NOW) == OutagePlan()
