"""Which pods a ReplicaSet makes, ends, takes in and lets go, and what it says about them."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import msgspec
import pytest

from herder.api.core import Pod
from herder.rules.workloads import ReplicaSetSnapshot, claim, plan_replica_set, replica_set_status
from herder.rules.workloads.ranking import first_to_go
from herder.rules.workloads.replica_set import BURST, names, pod_document

from .things import NOW, TEMPLATE, pod, replica_set


def snapshot(replicas: int, *pods: Pod, **more: Any) -> ReplicaSetSnapshot:
    return ReplicaSetSnapshot(replica_set(replicas=replicas, **more), TEMPLATE, pods)


def test_it_makes_what_is_missing_and_not_more_than_a_burst_at_once() -> None:
    assert plan_replica_set(snapshot(3, pod("a", ready=1)), NOW).create == 2
    assert plan_replica_set(snapshot(9000), NOW).create == BURST


def test_pods_that_have_ended_or_are_told_to_are_made_up_for() -> None:
    gone = [pod("a", phase="Failed"), pod("b", phase="Succeeded"), pod("c", ready=1, deleted=True)]
    assert plan_replica_set(snapshot(1, *gone), NOW).create == 1


def test_one_that_is_deleted_does_nothing() -> None:
    plan = plan_replica_set(snapshot(3, deleted=True), NOW)
    assert (plan.create, plan.delete) == (0, ())


ORDER = [
    pod("unplaced", node="", phase="Pending"),
    pod("pending", phase="Pending"),
    pod("unknown", phase="Unknown"),
    pod("not-ready"),
    pod("cheap", ready=50, annotations={"controller.kubernetes.io/pod-deletion-cost": "-1"}),
    pod("crowded", ready=50, node="crowd"),
    pod("just-ready", ready=1),
    pod("restarted", ready=50, restarts=7),
    pod("young", ready=50, age=60),
    pod("old", ready=50, age=10_000),
    pod("costly", ready=1, annotations={"controller.kubernetes.io/pod-deletion-cost": "5"}),
]


@pytest.mark.parametrize(("first", "second"), list(pairwise(ORDER)), ids=lambda one: one.name)
def test_those_that_are_missed_least_go_first(first: Pod, second: Pod) -> None:
    related = [*ORDER, pod("x", ready=1, node="crowd"), *(pod(f"y{number}", ready=1, node="crowd") for number in range(20))]
    assert [one.name for one in first_to_go([second, first], related, 1, NOW)] == [first.name]


@pytest.mark.parametrize("cost", ["", "x", "+5", "007", "1e3", "2147483648", "٣"])
def test_a_cost_that_is_none_counts_as_nothing(cost: str) -> None:
    odd = pod("a", ready=1, annotations={"controller.kubernetes.io/pod-deletion-cost": cost})
    plain = pod("b", ready=1, annotations={"controller.kubernetes.io/pod-deletion-cost": "1"})
    assert first_to_go([plain, odd], [], 1, NOW) == [odd]


def test_names_are_the_same_for_the_same_pods_and_others_for_others() -> None:
    before = list(islice(names(snapshot(3, pod("a"))), 3))
    assert before == list(islice(names(snapshot(3, pod("a"))), 3))
    assert len({*before, *islice(names(snapshot(3, pod("a"), pod("b"))), 3)}) == 6
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in before)
    long = ReplicaSetSnapshot(replica_set("x" * 200), TEMPLATE)
    assert len(next(names(long))) == 63


def test_a_pod_is_made_of_the_template_as_it_was_written() -> None:
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "name": "no"}, "spec": {"future": [1]}}
    made = pod_document(ReplicaSetSnapshot(replica_set(), template), "web-abcde")
    assert made["spec"] == {"future": [1]}
    metadata = made["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["labels"], metadata["annotations"]) == (
        "web-abcde",
        "shop",
        {"app": "web"},
        {"a": "b"},
    )
    assert metadata["ownerReferences"][0]["uid"] == "uid-web"


def test_its_status_counts_and_says_when_to_look_again() -> None:
    pods = [
        pod("ready", ready=30),
        pod("fresh", ready=4),
        pod("unready"),
        pod("unlabelled", ready=30, labels={"other": "x"}),
        pod("ending", ready=30, deleted=True),
        pod("ended", phase="Failed"),
    ]
    status, wait = replica_set_status(snapshot(4, *pods, spec={"minReadySeconds": 10}), "", NOW)
    assert status == {
        "replicas": 4,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "terminatingReplicas": 1,
        "observedGeneration": 1,
    }
    assert wait == 6.0


def test_a_failure_is_told_once_and_taken_back() -> None:
    first, _ = replica_set_status(snapshot(1), "no quota", NOW)
    (condition,) = first["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == ("ReplicaFailure", "FailedCreate", "no quota")
    second, _ = replica_set_status(snapshot(1, status=first), "still no quota", NOW + 100)
    assert second["conditions"] == [condition]
    assert "conditions" not in replica_set_status(snapshot(1, status=first), "", NOW + 100)[0]


def test_what_nobody_manages_is_taken_in_and_what_is_not_selected_is_let_go() -> None:
    mine, lost = pod("mine", owner="uid-web"), pod("lost", owner="uid-web", labels={"app": "x"})
    orphan, foreign = pod("orphan"), pod("foreign", owner="uid-other")
    ending, unselected = pod("ending", deleted=True), pod("unselected", labels={"app": "x"})
    everyone = [mine, lost, orphan, foreign, ending, unselected]
    found = claim(replica_set(), everyone)
    assert (found.owned, found.adopt, found.release) == ((mine,), (orphan,), (lost,))
    going = claim(replica_set(deleted=True), everyone)
    assert (going.owned, going.adopt, going.release) == ((mine,), (), ())


def test_a_selector_that_would_select_everything_selects_nothing() -> None:
    everything = msgspec.structs.replace(replica_set(), spec=msgspec.structs.replace(replica_set().spec, selector=None))
    assert claim(everything, [pod("a")]).adopt == ()
