"""Machines that sleep beside the replicas: who is made, put to work, rolled and given up."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api import labels
from herder.rules.pools import PoolPlan, plan_pool
from herder.rules.pools.member import Member, RunField, Suspension
from herder.rules.pools.save_failure import save_failure_of

from .test_online_preservation import failed, names
from .things import NOW, A, B, at, broken, halted, member, name_of, pool, snapshot, starting, template, volume

SAVED = Suspension(holds=True, reason="MemorySaved")


def planned(replicas: int, *members: Member, standby: Any = None, **more: Any) -> PoolPlan:
    spec = more.pop("spec", {})
    wanted = more.get("wanted", A)
    status = more.pop("status", {"currentRevision": name_of(wanted)})
    return plan_pool(snapshot(pool(replicas, wanted, status, standby=standby, **spec), *members, **more), NOW)


def offline(replicas: int) -> Any:
    return {"replicas": replicas}


def online(replicas: int) -> Any:
    return {"replicas": replicas, "state": "Online"}


def stopped(number: int, wanted: Any = A, **changed: Any) -> Member:
    return halted(number, wanted, standby="Offline", **changed)


def asleep(number: int, wanted: Any = A, **changed: Any) -> Member:
    return halted(number, wanted, standby="Online", suspension=SAVED, run=RunField("runStrategy", "Always"), **changed)


def awake(number: int, wanted: Any = A, **changed: Any) -> Member:
    return member(number, wanted, standby="Online", **changed)


def test_they_are_made_beside_the_replicas_with_the_numbers_behind_them() -> None:
    plan = planned(2, standby=offline(2))
    assert [(one.name, one.standby) for one in plan.create] == [
        ("web-1", False),
        ("web-2", False),
        ("web-3", True),
        ("web-4", True),
    ]
    made = plan.create[2].document
    assert made["metadata"]["labels"][labels.STANDBY] == "Offline" and made["spec"]["runStrategy"] == "Halted"
    awaited = planned(0, standby=online(1)).create[0].document
    assert awaited["metadata"]["labels"][labels.STANDBY] == "Online" and awaited["spec"]["runStrategy"] == "Always"
    assert "suspended" not in awaited["spec"]


def test_they_count_apart() -> None:
    plan = planned(1, member(1), stopped(2), asleep(3), awake(4), standby=offline(3))
    shown = plan.status
    assert [shown[name] for name in ("replicas", "readyReplicas", "updatedReplicas", "unavailableReplicas")] == [1, 1, 1, 0]
    assert (shown["standbyReplicas"], shown["readyStandbyReplicas"]) == (3, 2)


def test_a_scale_out_takes_those_first_that_sleep_and_the_lowest_number_of_them() -> None:
    plan = planned(3, member(1), awake(2, ready=False, running=False), stopped(3), stopped(4), standby=offline(3))
    assert names(plan.activate) == ["web-3", "web-4"]
    taken = plan.activate[0].document
    assert labels.STANDBY not in taken["metadata"]["labels"] and taken["spec"]["runStrategy"] == "Always"
    assert plan.create == ()
    # It counts from now on: how long it slept says nothing about its revision.
    assert taken["metadata"]["annotations"][labels.POOL_UPDATED] == at(0)


def test_others_are_made_in_their_place_once_they_run_or_have_had_their_time() -> None:
    begun = starting(2, created=NOW - 900, updated=NOW - 5)
    waits = planned(2, member(1), begun, standby=offline(1))
    assert waits.create == () and waits.next_look == 25
    late = planned(2, member(1), starting(2, created=NOW - 900, updated=NOW - 31), standby=offline(1))
    assert [(one.name, one.standby) for one in late.create] == [("web-3", True)]
    done = planned(2, member(1), member(2), standby=offline(1))
    assert [(one.name, one.standby) for one in done.create] == [("web-3", True)]


def test_more_than_there_are_is_made() -> None:
    plan = planned(4, member(1), stopped(2), standby=offline(1))
    assert names(plan.activate) == ["web-2"]
    assert [(one.name, one.standby) for one in plan.create] == [("web-3", False), ("web-4", False)]


def test_one_with_memory_goes_on_with_its_own_revision_and_one_without_gets_that_of_new_ones() -> None:
    plan = planned(3, member(1, B), asleep(2, A), stopped(3, A), standby=online(2), wanted=B, stored=(A,))
    assert [(one.name, one.revision) for one in plan.activate] == [("web-2", name_of(A)), ("web-3", name_of(B))]
    assert "suspended" not in plan.activate[0].document["spec"]


def test_one_that_shall_sleep_online_is_suspended_once_it_is_ready() -> None:
    plan = planned(1, member(1), awake(2), starting(3, standby="Online"), standby=online(2))
    assert [(one.name, one.document["spec"].get("suspended")) for one in plan.standby] == [("web-2", True)]
    assert planned(1, member(1), awake(2, suspension=Suspension(reason="SavingMemory")), standby=online(1)).standby == ()
    assert planned(1, member(1), asleep(2), standby=online(1)).standby == ()


def test_they_are_rolled_once_the_revision_has_proven_itself() -> None:
    old = {"currentRevision": name_of(A)}
    rolling = planned(1, member(1, A), stopped(2, A), wanted=B, stored=(A,), status=old, standby=offline(1))
    assert rolling.standby == ()
    done = planned(1, member(1, B), stopped(2, A), asleep(3, A), wanted=B, stored=(A,), standby=online(2))
    # One at a time: the other one sleeps on until the first is back.
    assert [(one.name, one.revision, "suspended" in one.document["spec"]) for one in done.standby] == [("web-2", name_of(B), False)]


def test_no_more_are_woken_at_once_for_a_revision_than_may_be_unavailable() -> None:
    sleeping = [asleep(number, A) for number in (2, 3, 4)]
    one = planned(1, member(1, B), *sleeping, wanted=B, stored=(A,), standby=online(3), spec={"maxUnavailable": 1})
    assert names(one.standby) == ["web-2"]
    two = planned(1, member(1, B), *sleeping, wanted=B, stored=(A,), standby=online(3), spec={"maxUnavailable": 2})
    assert names(two.standby) == ["web-2", "web-3"]


def test_labels_alone_wake_nobody() -> None:
    other = template("1Gi", labels={"app": "other"})
    plan = planned(1, member(1, other), asleep(2, A), wanted=other, stored=(A,), standby=online(1))
    assert [one.document["spec"].get("suspended") for one in plan.standby] == [True]


def test_one_whose_memory_cannot_be_saved_is_stopped_and_tried_again_later() -> None:
    problem = Suspension(reason="SaveFailed", message="the disk is full")
    (write,) = planned(1, member(1), awake(2, suspension=problem), standby=online(1)).standby
    assert write.document["spec"]["runStrategy"] == "Halted" and "suspended" not in write.document["spec"]
    known = save_failure_of(write.document["metadata"]["annotations"][labels.SAVE_FAILED])
    assert known is not None and known.attempts == 1
    waits = planned(1, member(1), stopped(2, save_failure=failed("full", 9.0)), standby=online(1))
    assert waits.standby == () and waits.next_look == 9
    said = next(one for one in waits.status["conditions"] if one["type"] == "MemoryPreserved")
    assert "web-2: full" in said["message"]
    again = planned(1, member(1), stopped(2, save_failure=failed("full", -1.0)), standby=online(1))
    assert [one.document["spec"]["runStrategy"] for one in again.standby] == ["Always"]


def test_one_that_ended_before_it_was_saved_is_booted_again() -> None:
    nothing = Suspension(holds=True, reason="NothingSaved")
    plan = planned(1, member(1), halted(2, standby="Online", suspension=nothing), standby=online(1))
    assert [one.document["spec"].get("suspended") for one in plan.standby] == [None]


@pytest.mark.parametrize(
    "made_of",
    [template(volumes=[{"name": "s", "emptyDisk": {"capacity": "1Gi"}}]), template(run={"running": False})],
    ids=["an emptyDisk", "kept off"],
)
def test_what_has_no_memory_sleeps_stopped(made_of: Any) -> None:
    (made,) = planned(0, standby=online(1), wanted=made_of).create
    assert made.document["metadata"]["labels"][labels.STANDBY] == "Offline"
    assert made.document["spec"].get("runStrategy", "Halted") == "Halted" and not made.document["spec"].get("running")


def test_those_that_are_too_many_go_the_highest_first_and_what_the_strategy_keeps_of_them_stays() -> None:
    kept = {"scaleInStrategy": {"proactive": {"statePreservation": "Online"}}}
    plan = planned(1, member(1), asleep(2), asleep(3), standby=online(1), spec=kept)
    assert [(one.name, one.preserve, one.memory) for one in plan.remove] == [("web-3", True, True)]
    none = planned(1, member(1), stopped(2))
    assert [(one.name, one.preserve) for one in none.remove] == [("web-2", False)]


def test_those_that_wait_for_the_burst_to_be_put_to_work_are_not_given_up() -> None:
    plan = planned(4, member(1), stopped(2), stopped(3), stopped(4), burst=2)
    assert names(plan.activate) == ["web-2", "web-3"] and plan.remove == () and plan.create == ()


def test_a_gap_is_filled_with_what_was_kept_of_it_and_memory_sleeps_on() -> None:
    memory = volume("web-2", name="web-2-memory", revision=name_of(A), memory=True)
    (made,) = planned(1, member(1), volumes=(memory,), standby=offline(1)).create
    assert (made.name, made.resumes, made.standby) == ("web-2", True, True)
    assert made.document["spec"]["suspended"] is True and made.document["metadata"]["labels"][labels.STANDBY] == "Online"


def test_one_that_does_not_start_is_healed_within_the_same_limits() -> None:
    sick = broken(2, standby="Online")
    plan = planned(1, member(1), sick, standby=online(1), spec={"autohealing": {}})
    assert names(plan.heal) == ["web-2"]


def test_a_template_cannot_make_its_machines_standbys() -> None:
    marked = template()
    marked["metadata"]["labels"][labels.STANDBY] = "Online"
    (made,) = planned(1, wanted=marked).create
    assert labels.STANDBY not in made.document["metadata"]["labels"]


def test_a_paused_pool_leaves_them_as_they_are() -> None:
    plan = planned(3, member(1), stopped(2), standby=offline(3), spec={"paused": True})
    assert (plan.activate, plan.create, plan.standby) == ((), (), ()) and plan.status["standbyReplicas"] == 1
