"""What budgets say about the end of a pod."""

from typing import Any

import msgspec
import pytest

from herder.api.core import PodDisruptionBudget, PodUnavailableBudget
from herder.rules.jobs.budgets import (
    MOST_DISRUPTED,
    Budget,
    Target,
    claims,
    judge,
    needs_no_budget,
    read_disruption_budget,
    read_unavailable_budget,
    recounted,
    selector_of,
    target_of,
    unavailable_budget_selector,
)

Json = dict[str, Any]
THEN = "2025-06-15T15:06:40Z"


def disruption(name: str = "web", *, generation: int = 1, policy: str | None = None, **status: Any) -> Budget:
    counted = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, **status}
    document = {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": generation},
        "spec": {"unhealthyPodEvictionPolicy": policy} if policy else {},
        "status": counted,
    }
    return read_disruption_budget(msgspec.convert(document, PodDisruptionBudget))


def unavailable_budget(spec: Json | None = None, annotations: Json | None = None, **status: Any) -> PodUnavailableBudget:
    counted = {"observedGeneration": 1, "unavailableAllowed": 1, "currentAvailable": 3, "desiredAvailable": 2, **status}
    metadata = {"name": "pub", "namespace": "shop", "uid": "uid-pub", "generation": 1, "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": spec or {}, "status": counted}, PodUnavailableBudget)


def unavailability(**status: Any) -> Budget:
    budget = read_unavailable_budget(unavailable_budget(**status))
    assert budget is not None
    return budget


def why(*budgets: Budget, ready: bool = True, claimed: dict[str, int] | None = None) -> str:
    refusal = judge(budgets, "p", ready=ready, claimed=claimed or {})
    return refusal.why if refusal is not None else ""


MANY: Json = {f"p{number}": THEN for number in range(MOST_DISRUPTED + 1)}


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        ({}, ""),
        ({"disruptionsAllowed": 0}, "Spent"),
        ({"disruptionsAllowed": -1}, "Unclear"),
        ({"observedGeneration": 0}, "Stale"),
        ({"observedGeneration": 0, "disruptionsAllowed": 0}, "Stale"),
        ({"disruptedPods": MANY}, "Unclear"),
        ({"disruptedPods": {"q": THEN}}, ""),
    ],
)
def test_a_ready_pod_goes_only_where_its_budget_has_counted_and_has_some_left(status: Json, refused: str) -> None:
    assert why(disruption(**status)) == refused


@pytest.mark.parametrize(
    ("policy", "status", "refused"),
    [
        # Enough others are healthy: it may go, whatever is left.
        (None, {"disruptionsAllowed": 0}, ""),
        ("IfHealthyBudget", {"disruptionsAllowed": 0}, ""),
        (None, {"disruptionsAllowed": 0, "currentHealthy": 2}, ""),
        # Too few are: it could become healthy, and is needed.
        (None, {"disruptionsAllowed": 0, "currentHealthy": 1}, "Spent"),
        ("IfHealthyBudget", {"disruptionsAllowed": 0, "currentHealthy": 1}, "Spent"),
        ("AlwaysAllow", {"disruptionsAllowed": 0, "currentHealthy": 1}, ""),
        ("AlwaysAllow", {"observedGeneration": 0}, ""),
        # Nobody is wanted healthy: that says nothing.
        (None, {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0}, "Spent"),
    ],
)
def test_a_pod_that_is_not_ready_goes_by_the_policy_for_such_pods(policy: str | None, status: Json, refused: str) -> None:
    assert why(disruption(policy=policy, **status), ready=False) == refused


def test_two_disruption_budgets_on_one_pod_are_told_apart_from_one_that_is_spent() -> None:
    assert why(disruption("a"), disruption("b")) == "Several"
    assert why(disruption("a"), disruption("b"), ready=False) == "Several"
    assert why(disruption("a"), unavailability()) == ""
    assert why(disruption("a"), unavailability(unavailableAllowed=0)) == "Spent"


def test_what_others_are_about_to_take_is_not_there_any_more() -> None:
    budget = disruption(disruptionsAllowed=2)
    assert why(budget, claimed={"uid-web": 1}) == ""
    assert why(budget, claimed={"uid-web": 2}) == "Spent"
    assert why(budget, claimed={"uid-other": 2}) == ""
    refusal = judge([budget], "p", ready=True, claimed={"uid-web": 2})
    assert refusal is not None
    assert refusal.message == "PodDisruptionBudget web allows 2 to go, and 2 that it has not counted yet are to go"


def test_only_a_pod_that_the_budget_still_counts_takes_from_it() -> None:
    budget = disruption(disruptedPods={"gone": THEN})
    assert claims([budget], "p", ready=True) == ["uid-web"]
    assert claims([budget], "p", ready=False) == []
    assert claims([budget], "gone", ready=True) == []
    assert claims([unavailability(desiredAvailable=0)], "p", ready=True) == []


@pytest.mark.parametrize(
    ("status", "ready", "refused"),
    [
        ({}, True, ""),
        ({"unavailableAllowed": 0}, True, "Spent"),
        ({"unavailableAllowed": -2}, True, "Spent"),
        ({"unavailableAllowed": 0}, False, ""),
        # It wants nobody: as many may go as like.
        ({"unavailableAllowed": 0, "desiredAvailable": 0}, True, ""),
        ({"observedGeneration": 0, "desiredAvailable": 0}, True, "Stale"),
        # The pod is away by its count already.
        ({"unavailableAllowed": 0, "disruptedPods": {"p": THEN}}, True, ""),
        ({"unavailableAllowed": 0, "unavailablePods": {"p": THEN}}, True, ""),
        ({"unavailablePods": MANY}, True, "Unclear"),
    ],
)
def test_kruises_budgets_are_read_as_its_webhook_reads_them(status: Json, ready: bool, refused: str) -> None:
    assert why(unavailability(**status), ready=ready) == refused


@pytest.mark.parametrize(
    ("operations", "binds"), [("", True), ("EVICT", True), ("UPDATE,DELETE", True), ("UPDATE", False), ("RESIZE,UPDATE", False)]
)
def test_a_kruise_budget_that_protects_nobody_from_eviction_is_none(operations: str, binds: bool) -> None:
    annotations = {"kruise.io/pub-protect-operations": operations}
    assert (read_unavailable_budget(unavailable_budget(annotations=annotations)) is not None) is binds


def test_a_kruise_budget_picks_by_its_target_before_its_selector() -> None:
    target = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}
    both = unavailable_budget({"targetRef": target, "selector": {"matchLabels": {"app": "web"}}})
    assert target_of(both) == Target("apps.kruise.io", "CloneSet", "web")
    assert not unavailable_budget_selector(both).matches({"app": "web"})
    selecting = unavailable_budget({"selector": {"matchLabels": {"app": "web"}}})
    assert target_of(selecting) is None
    assert unavailable_budget_selector(selecting).matches({"app": "web"})


@pytest.mark.parametrize(
    ("selector", "picks"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        # Not right: about nothing.
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}, False),
    ],
)
def test_an_empty_selector_picks_all_and_none_at_all_picks_none(selector: Json | None, picks: bool) -> None:
    document = {"metadata": {"name": "b"}, "spec": {"selector": selector}}
    budget = msgspec.convert(document, PodDisruptionBudget)
    assert selector_of(budget.spec.selector).matches({"app": "web"}) is picks


@pytest.mark.parametrize(
    ("phase", "terminating", "free"),
    [
        ("Running", False, False),
        ("Running", True, True),
        ("Pending", False, True),
        ("Failed", False, True),
        ("Unknown", False, False),
    ],
)
def test_nobody_is_disturbed_by_the_end_of_a_pod_that_does_not_run(phase: str, terminating: bool, free: bool) -> None:
    assert needs_no_budget(phase, terminating) is free


@pytest.mark.parametrize(
    ("healthy", "allowed", "refused"),
    [
        (4, 1, ""),
        (3, 1, ""),
        (2, 0, "Spent"),
        (0, 0, "Spent"),
    ],
)
def test_who_deletes_counts_himself_who_is_still_healthy(healthy: int, allowed: int, refused: str) -> None:
    """Trap: policy Delete passes no budget. A deletion takes nothing from a status, before somebody counts anew."""
    counted = recounted(disruption(), healthy)
    assert (counted.allowed, why(counted)) == (allowed, refused)
    assert refused == "" or f"needs 2 healthy pods and has {healthy} currently" in str(counted.refusal)


def test_what_a_budget_says_already_is_not_said_otherwise_by_who_counts_again() -> None:
    spent = disruption(disruptionsAllowed=0, currentHealthy=2)
    assert recounted(spent, 5) is spent and recounted(unavailability(), 0) == unavailability()
