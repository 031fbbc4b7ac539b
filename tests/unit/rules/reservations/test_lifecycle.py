"""What becomes of a reservation, and what its status says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import Node
from herder.rules.reservations import ReservationPlan, plan_reservation
from herder.rules.reservations.lifecycle import RETENTION
from herder.rules.reservations.room import placing_needs
from herder.rules.reservations.status import placed_status, unplaced_status
from tests.unit.rules.placement.cluster import node
from tests.unit.rules.reservations.objects import reservation, web

BORN = 1_767_225_600.0
DAY = 86400.0


def view(document: dict[str, Any]) -> Node:
    return msgspec.convert(document, Node)


def plan(now: float = BORN + 60, *takers: Any, on: dict[str, Any] | None = None, **about: Any) -> ReservationPlan:
    where: dict[str, Any] = {"node": "a", **about}
    return plan_reservation(reservation(**where), view(on if on is not None else node("a")), takers, now)


def status(found: ReservationPlan) -> dict[str, Any]:
    assert found.status is not None
    return found.status


def test_a_pod_that_takes_it_ends_it() -> None:
    found = plan(BORN + 60, web(on="a", took="r"))
    shown = status(found)
    assert (shown["phase"], shown["reason"], shown["nodeName"]) == ("Succeeded", "Succeeded", "a")
    assert shown["currentOwners"] == [
        {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-1", "uid": "uid-web-1"}
    ]
    assert [(one["type"], one["status"], one["reason"]) for one in shown["conditions"]] == [
        ("Scheduled", "True", "Scheduled"),
        ("Ready", "False", "Succeeded"),
    ]
    assert [event.message for event in found.events] == ["pod default/web-1 took the room on node a"]


def test_what_a_job_tells_of_its_own_reservation_is_not_told_twice() -> None:
    job = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "name": "j",
        "uid": "u",
        "controller": True,
    }
    found = plan(BORN + 60, web(on="a", took="r"), metadata={"ownerReferences": [job]})
    assert (status(found)["message"], found.events) == ("pod default/web-1 took it", ())
    foreign = {**job, "apiVersion": "example.com/v1"}
    assert plan(BORN + 60, web(on="a", took="r"), metadata={"ownerReferences": [foreign]}).events


def test_without_allocate_once_it_goes_on_and_says_who_uses_how_much() -> None:
    takers = [web(f"web-{number}", on="a", took="r", requests={"cpu": "1", "memory": "1Gi"}) for number in (2, 1)]
    shown = status(plan(BORN + 60, *takers, allocateOnce=False, requests={"cpu": "4", "memory": "4Gi"}))
    assert (shown["phase"], shown["allocatable"], shown["allocated"]) == (
        "Available",
        {"cpu": "4", "memory": "4Gi"},
        {"cpu": "2", "memory": "2Gi"},
    )
    assert [one["name"] for one in shown["currentOwners"]] == ["web-1", "web-2"]


def test_of_very_many_users_as_many_are_named_as_a_status_may_have() -> None:
    takers = [web(f"web-{number}", on="a", took="r") for number in range(300)]
    assert len(status(plan(BORN + 60, *takers, allocateOnce=False))["currentOwners"]) == 256


@pytest.mark.parametrize(
    ("about", "end"),
    [
        ({}, BORN + DAY),
        ({"ttl": "10m"}, BORN + 600),
        ({"expires": "2026-01-01T02:00:00Z"}, BORN + 7200),
        ({"ttl": "10m", "node": "", "status": {"phase": "Pending"}}, BORN + 600),
    ],
    ids=["a day, when nothing is said", "ttl", "expires", "one that was never placed"],
)
def test_it_expires(about: dict[str, Any], end: float) -> None:
    before = plan(end - 10, **about)
    assert before.next_look == pytest.approx(10)
    assert before.status is None or before.status["phase"] == "Available"
    shown = status(plan(end, **about))
    assert (shown["phase"], shown["reason"]) == ("Failed", "Expired")
    assert shown["conditions"][-1]["reason"] == "Expired"


def test_with_a_ttl_of_nothing_it_never_does() -> None:
    found = plan(BORN + 1000 * DAY, ttl="0s")
    assert status(found)["phase"] == "Available"
    assert found.next_look is None


TAINT = {"key": "broken", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("on", "why"),
    [
        (
            node("a", unschedulable=True),
            "node a is not for it any more: the node is cordoned (spec.unschedulable): it is placed anew",
        ),
        (node("a", taints=[TAINT]), "node a is not for it any more: taint broken:NoSchedule is not tolerated: it is placed anew"),
    ],
)
def test_room_that_nobody_took_leaves_a_node_that_is_none_for_it_any_more(on: dict[str, Any], why: str) -> None:
    found = plan(on=on)
    shown = status(found)
    assert (shown["phase"], shown["reason"], shown["message"]) == ("Pending", "NodeUnfit", why)
    assert "nodeName" not in shown
    assert [event.message for event in found.events] == [why]


def test_a_node_that_is_gone_sends_it_back_too() -> None:
    found = plan_reservation(reservation(node="a"), None, (), BORN + 60)
    assert status(found)["message"] == "node a is gone: it is placed anew"


def test_what_tolerates_it_and_what_is_used_stays() -> None:
    assert status(plan(on=node("a", taints=[TAINT]), template={"tolerations": [{"operator": "Exists"}]}))["phase"] == "Available"
    used = plan(BORN + 60, web(on="a", took="r"), on=node("a", unschedulable=True), allocateOnce=False, requests={"cpu": "4"})
    assert status(used)["phase"] == "Available"


def test_one_that_is_over_is_removed_after_a_while() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "Expired", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    over = {"status": {"phase": "Failed", "conditions": [condition]}}
    assert plan(BORN + RETENTION - 5, **over) == ReservationPlan(next_look=5)
    gone = plan(BORN + RETENTION, **over).delete
    assert gone is not None
    assert (gone.name, gone.uid) == ("r", "uid-r")


def test_one_that_is_being_deleted_is_left_alone() -> None:
    assert plan(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) == ReservationPlan()


def test_where_it_is_and_why_it_is_nowhere() -> None:
    held = reservation(requests={"cpu": "1500m", "memory": "1Gi"})
    shown = placed_status(held, placing_needs(held), "a", BORN)
    assert (shown["phase"], shown["nodeName"], shown["allocatable"]) == ("Available", "a", {"cpu": "1500m", "memory": "1Gi"})
    assert shown["expirationTime"] == "2026-01-02T00:00:00Z"
    waits = unplaced_status(held, "0/1 nodes are available: 1 Insufficient cpu.", BORN)
    assert (waits["phase"], waits["reason"]) == ("Pending", "Unschedulable")
    assert waits["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient cpu."
