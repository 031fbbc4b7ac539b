"""Whose memory is saved before it is taken, who is not taken, and with what a machine comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.rules.plans import moment
from herder.rules.pools import PoolPlan, plan_pool
from herder.rules.pools.member import Member, RunField, Suspension
from herder.rules.pools.save_failure import FORGOTTEN_AFTER, LONGEST_WAIT, SaveFailure, one_more, save_failure_of
from herder.rules.pools.selection.inputs import NodeState

from .things import NOW, A, B, halted, member, name_of, pool, snapshot, starting, template, volume

ONLINE: dict[str, Any] = {"scaleInStrategy": {"proactive": {"statePreservation": "Online"}}}
CAN = {"node-1": NodeState({labels.SAVE_MEMORY: "true"})}
SAVED = Suspension(by_pool=True, holds=True, reason="MemorySaved")
SAVING = Suspension(by_pool=True, reason="SavingMemory")


def scaled(replicas: int, *members: Member, spec: Any = ONLINE, nodes: Any = CAN, **more: Any) -> PoolPlan:
    return plan_pool(snapshot(pool(replicas, **spec), *members, nodes=nodes, **more), NOW)


def asleep(number: int, suspension: Suspension = SAVED, **changed: Any) -> Member:
    return halted(number, suspension=suspension, run=RunField("runStrategy", "Always"), **changed)


def failed(why: str, seconds: float, attempts: int = 1) -> SaveFailure:
    return SaveFailure(attempts=attempts, retry_after=moment(NOW + seconds), message=why)


def names(actions: Any) -> list[str]:
    return [one.name for one in actions]


def test_one_that_runs_is_suspended_first_and_listed_live_before() -> None:
    plan = scaled(1, member(1), member(2, scale_in="first"))
    assert (names(plan.suspend), names(plan.remove), plan.destroys) == (["web-2"], [], True)
    assert plan.suspend[0].document is None and plan.status["surplusReplicas"] == 0


def test_it_goes_once_its_memory_is_saved_and_is_not_let_go_for_another_one() -> None:
    waits = scaled(1, member(1, scale_in="first"), member(2, suspension=SAVING))
    assert (names(waits.suspend), names(waits.remove), names(waits.resume)) == ([], [], [])
    plan = scaled(1, member(1, scale_in="first"), asleep(2))
    assert [(one.name, one.preserve, one.memory) for one in plan.remove] == [("web-2", True, True)]
    unseen = scaled(1, member(1), asleep(2, Suspension(by_pool=True, reason="SavingMemory")))
    assert names(unseen.remove) == []


@pytest.mark.parametrize(
    "other",
    [
        halted(2),
        starting(2),
        asleep(2, Suspension(holds=True, reason="NothingSaved")),
        member(2, restarting=True, scale_in="first"),
    ],
    ids=["halted", "starting", "nothing saved", "restarting"],
)
def test_one_that_has_nothing_to_save_is_taken_as_offline(other: Member) -> None:
    plan = scaled(1, member(1), other)
    assert [(one.name, one.preserve, one.memory) for one in plan.remove] == [("web-2", True, False)]


@pytest.mark.parametrize(
    ("kept", "nodes", "why"),
    [
        (member(2, unsavable="volume s is an emptyDisk"), CAN, "volume s is an emptyDisk"),
        (member(2), {"node-1": NodeState({labels.SAVE_MEMORY: "false"})}, "its node node-1 cannot save memory"),
        (member(2), {"node-1": NodeState({labels.SAVE_MEMORY: "true"}, answers=False)}, "its node node-1 does not answer"),
        (member(2, save_failure=failed("the disk is full", 5.0)), CAN, "the disk is full"),
        (member(2, suspension=Suspension(reason="CannotSaveMemory", message="no")), CAN, "no"),
    ],
)
def test_one_that_cannot_be_saved_is_not_taken_and_the_pool_says_so(kept: Member, nodes: Any, why: str) -> None:
    plan = scaled(0, kept, nodes=nodes)
    assert (names(plan.suspend), names(plan.remove), plan.status["surplusReplicas"]) == ([], [], 1)
    shown = next(one for one in plan.status["conditions"] if one["type"] == "MemoryPreserved")
    assert (shown["status"], shown["reason"]) == ("False", "CannotSaveMemory") and f"web-2: {why}" in shown["message"]


def test_another_one_is_chosen_in_place_of_one_that_cannot_be_saved() -> None:
    plan = scaled(1, member(1), member(2, scale_in="first", unsavable="an emptyDisk"))
    assert names(plan.suspend) == ["web-1"]
    assert all(one["type"] != "MemoryPreserved" for one in plan.status["conditions"])


def test_a_save_that_fails_is_called_off_written_down_and_tried_again_ever_later() -> None:
    problem = Suspension(by_pool=True, reason="SaveFailed", message="the disk is full")
    plan = scaled(1, member(1), member(2, suspension=problem))
    assert names(plan.suspend) == ["web-1"] and names(plan.resume) == ["web-2"]
    known = save_failure_of(plan.resume[0].failure)
    assert known is not None and (known.attempts, known.message, known.until(NOW)) == (1, "the disk is full", NOW + 10)
    again = save_failure_of(one_more(known, "still", NOW))
    assert again is not None and (again.attempts, again.until(NOW)) == (2, NOW + 20)
    long_ago = save_failure_of(one_more(failed("x", -FORGOTTEN_AFTER - 1, attempts=9), "now", NOW))
    assert long_ago is not None and long_ago.attempts == 1
    waits = scaled(0, member(2, save_failure=known))
    assert waits.next_look == 10


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"attempts": "many"}', '{"retryAfter": "2026"}', '{"attempts": 1e400}'])
def test_what_cannot_be_read_never_failed(text: str) -> None:
    assert save_failure_of(text) is None


def test_nobody_is_kept_waiting_longer_than_the_longest_wait_whoever_wrote_it() -> None:
    assert failed("x", LONGEST_WAIT + 1).until(NOW) == NOW
    assert len(msgspec.json.decode(one_more(failed("x", 0, attempts=-5), "y" * 9999, NOW))["message"]) == 500


def test_whom_the_pool_suspended_goes_on_when_it_stays_after_all_and_whom_a_person_did_does_not() -> None:
    by_person = Suspension(holds=True, reason="MemorySaved")
    plan = scaled(3, member(1, suspension=SAVING), asleep(2), asleep(3, by_person))
    assert [(one.name, one.failure) for one in plan.resume] == [("web-1", ""), ("web-2", "")]
    paused = scaled(1, member(1, suspension=SAVING), spec={**ONLINE, "paused": True})
    assert paused.resume == ()


def test_with_another_strategy_what_was_begun_ends_as_that_says() -> None:
    offline = {"scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}}
    plan = scaled(1, member(1), member(2, suspension=SAVING), spec=offline)
    assert [(one.name, one.memory) for one in plan.remove] == [("web-2", False)]
    unmanaged = scaled(1, member(1), member(2, suspension=SAVING), spec={"scaleInStrategy": {"unmanaged": {}}})
    assert names(unmanaged.resume) == ["web-2"]


def test_no_more_are_saved_at_once_than_the_burst() -> None:
    plan = scaled(0, *(member(number) for number in range(1, 9)), burst=3)
    assert len(plan.suspend) == 3
    begun = [member(number, suspension=SAVING) for number in (1, 2)]
    more = scaled(0, *begun, *(member(number) for number in range(3, 9)), burst=3)
    assert len(more.suspend) == 1


def test_a_spec_that_is_not_what_the_guest_runs_is_so_again_before_it_is_saved() -> None:
    plan = scaled(0, member(1, B, on=A), spec={**ONLINE, "updateStrategy": {"opportunistic": {}}}, wanted=B, stored=(A,))
    document = plan.suspend[0].document
    assert document is not None and document["spec"]["suspended"] is True
    assert document["metadata"]["labels"][labels.POOL_REVISION] == name_of(A)
    assert document["metadata"]["annotations"][labels.SUSPENDED_BY] == "pool-uid"


def test_who_comes_back_with_memory_has_the_revision_that_it_had_and_wipes_nothing() -> None:
    wiping = {"updateStrategy": {"proactive": {"volumes": "Reprovision"}}}
    old, new = template("1Gi", disk="http://a"), template("2Gi", disk="http://b")
    disk = volume("web-2", name="disk-2", revision=name_of(old))
    kept = volume("web-2", name="web-2-memory", revision=name_of(old), memory=True)
    plan = scaled(2, member(1, new), volumes=(disk, kept), wanted=new, stored=(old,), spec={**ONLINE, **wiping})
    (made,) = plan.create
    assert (made.name, made.revision, made.returning, made.resumes, made.wiped) == ("web-2", name_of(old), True, True, ())
    assert made.document["metadata"]["annotations"][labels.RESUME_FROM] == kept.uid
    assert plan.status["preservedStates"] == 1
    # Of a revision that nobody knows any more it boots, and its controller says why.
    lost = scaled(2, member(1, new), volumes=(msgspec.structs.replace(kept, revision="web-gone"),), wanted=new)
    assert [(one.revision, one.resumes) for one in lost.create] == [(name_of(new), False)]
    assert lost.create[0].document["metadata"]["annotations"][labels.RESUME_FROM] == kept.uid


def test_one_that_a_person_had_started_runs_again_although_its_template_keeps_it_off() -> None:
    off = template(run={"runStrategy": "Halted"})
    kept = volume("web-1", revision=name_of(off), memory=True)
    (made,) = scaled(1, volumes=(kept,), wanted=off).create
    assert made.document["spec"]["runStrategy"] == "Always"


def test_the_share_in_memory_that_was_taken_back_is_given_up() -> None:
    kept = volume("web-1", controller="uid-web-1", memory=True)
    plan = scaled(1, member(1), volumes=(kept,), living=frozenset({"uid-web-1"}))
    assert [(one.name, one.memory) for one in plan.release] == [("disk-of-web-1", True)]


@pytest.mark.parametrize(
    "suspended",
    [
        asleep(1, Suspension(holds=True, reason="MemorySaved")),
        member(1, suspension=Suspension(reason="SavingMemory")),
        starting(1, instance_uid="", instance_revision="", resuming=True),
        starting(1, resuming=True, instance_created=NOW - 59),
    ],
    ids=["asleep", "being saved", "to be resumed", "resuming"],
)
def test_a_rollout_leaves_memory_alone_unless_it_still_fits(suspended: Member) -> None:
    plan = scaled(1, suspended, wanted=B, stored=(A,), spec={})
    assert plan.update == () and plan.status["updatedReplicas"] == 0
    labelled = template("1Gi", labels={"app": "other"})
    goes = scaled(1, suspended, wanted=labelled, stored=(A,), spec={})
    assert [(one.name, one.effect) for one in goes.update] == [("web-1", "InPlace")]


def test_one_that_finds_no_place_to_go_on_is_like_any_other_that_does_not_start() -> None:
    late = starting(1, resuming=True, instance_created=NOW - 61)
    plan = scaled(1, late, wanted=B, stored=(A,), spec={})
    assert [(one.name, one.effect) for one in plan.update] == [("web-1", "Restart")]
