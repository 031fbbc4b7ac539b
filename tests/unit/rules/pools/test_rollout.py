"""How a changed template reaches the machines of a pool."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.rules.pools import PoolPlan, plan_pool
from herder.rules.pools.member import Member, ReadyPeriod, RunField
from herder.rules.pools.rollout import is_updated
from herder.rules.pools.snapshot import Refusal

from .things import NOW, A, B, C, Json, at, broken, halted, member, name_of, pool, proactive, snapshot, starting, template, volume


def roll(
    *members: Member, wanted: Json = B, replicas: int = 0, status: Json | None = None, burst: int = 250, **spec: Any
) -> PoolPlan:
    wished = {**proactive(selectionPolicy={"basePolicy": "Oldest"}), **spec}
    known = {"currentRevision": name_of(A), **(status or {})}
    of = pool(replicas or len(members), wanted, known, **wished)
    return plan_pool(snapshot(of, *members, wanted=wanted, stored=(A, B, C), burst=burst), NOW)


def updated(plan: PoolPlan) -> list[tuple[str, str]]:
    return [(one.name, one.effect) for one in plan.update]


def progressing(plan: PoolPlan) -> tuple[str, str]:
    found = next(one for one in plan.status["conditions"] if one["type"] == "Progressing")
    return found["status"], found["reason"]


# maxUnavailable


@pytest.mark.parametrize(("replicas", "most"), [(1, 1), (3, 1), (4, 1), (8, 2)])
def test_not_more_than_max_unavailable_are_taken_down_at_once(replicas: int, most: int) -> None:
    plan = roll(*(member(number) for number in range(1, replicas + 1)))
    assert updated(plan) == [(f"web-{number}", "Restart") for number in range(1, most + 1)]


@pytest.mark.parametrize(
    "missed",
    [
        starting(3, B),
        broken(3, B),
        member(3, B, deleting=True),
        member(3, B, restarting=True, ready=False),
        member(3, B, ready_since=NOW - 5),
    ],
    ids=["starting", "failing", "being deleted", "restarting", "not ready for long enough"],
)
def test_no_ready_machine_is_taken_down_while_that_many_are_unavailable_for_whatever_reason(missed: Member) -> None:
    assert roll(member(1), member(2), missed, replicas=3, minReadySeconds=10).update == ()


def test_a_machine_that_is_not_there_at_all_is_unavailable() -> None:
    assert roll(member(1), member(2), replicas=3).update == ()


def test_to_act_on_one_that_is_unavailable_already_costs_nothing_and_comes_first() -> None:
    plan = roll(member(1), broken(2), starting(3, A), replicas=3)
    assert [name for name, _ in updated(plan)] == ["web-2", "web-3"]


def test_a_mended_template_gets_through_although_too_many_are_unavailable() -> None:
    plan = roll(member(1), *(broken(number, B, ready_revision=name_of(A)) for number in (2, 3, 4)), wanted=C)
    assert [name for name, _ in updated(plan)] == ["web-2", "web-3", "web-4"]


def test_a_mended_template_gets_through_where_a_burst_is_under_way_already() -> None:
    members = [broken(1, B), *(starting(number, B) for number in (2, 3)), starting(4, B, instance_uid="", instance_revision="")]
    assert [name for name, _ in updated(roll(*members, wanted=C, burst=3))] == ["web-4", "web-2", "web-3"]


def test_machines_that_are_kept_off_are_updated_in_place_and_not_waited_for() -> None:
    plan = roll(member(1), *(halted(number) for number in (2, 3, 4)))
    assert updated(plan) == [*((f"web-{number}", "InPlace") for number in (2, 3, 4)), ("web-1", "Restart")]
    assert roll(member(1, B), halted(2, B), wanted=B).status["currentRevision"] == name_of(B)


def test_a_machine_that_a_person_paused_or_that_is_being_migrated_is_left_alone() -> None:
    plan = roll(member(1, paused=True, ready=False), member(2, migrating=True), maxUnavailable=2)
    assert plan.update == ()
    message = next(one["message"] for one in plan.status["conditions"] if one["type"] == "Progressing")
    assert message.endswith("; paused, and left so: web-1; waiting for migrations of web-2")


# What an update is


def test_spec_and_restart_request_go_in_one_patch_of_that_very_machine() -> None:
    step = roll(member(1)).update[0]
    assert step.document["metadata"]["annotations"]["herder.dev/restart-requested"] == "vmi-web-1"
    assert step.document["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "2Gi"
    assert (step.uid, step.resource_version) == ("uid-web-1", "10")


def test_labels_alone_go_to_all_at_once_without_a_restart() -> None:
    plan = roll(*(member(number) for number in range(1, 6)), wanted=template(labels={"app": "new"}))
    assert updated(plan) == [(f"web-{number}", "InPlace") for number in range(1, 6)]


def test_labels_alone_are_said_to_hold_for_the_instance_that_runs_also_where_that_waits_for_a_restart_by_hand() -> None:
    labelled = template(labels={"app": "new"})

    def said(plan: PoolPlan) -> list[str | None]:
        return [one.document["metadata"]["annotations"].get("herder.dev/updated-in-place") for one in plan.update]

    assert said(roll(member(1), wanted=labelled)) == ["vmi-web-1"]
    assert said(roll(member(1))) == [None], "of one that is restarted nobody says so"
    # The one that was named has ended in between, and the next one is as the first was.
    assert said(roll(member(1, labelled, on=A, updated_in_place="ended"), wanted=labelled)) == ["vmi-web-1"]
    assert roll(member(1, labelled, on=A, updated_in_place="vmi-web-1"), wanted=labelled).update == ()
    assert said(roll(member(1), wanted=labelled, updateStrategy={"opportunistic": {}})) == ["vmi-web-1"]


def test_a_machine_is_updated_when_its_instance_carries_the_revision() -> None:
    assert is_updated(member(1, B), name_of(B))
    assert not is_updated(member(1, B, on=A), name_of(B))
    assert not is_updated(starting(1, B, instance_uid="", instance_revision=""), name_of(B))
    assert is_updated(halted(1, B), name_of(B))


def test_an_instance_replaced_between_snapshot_and_restart_request_is_asked_again() -> None:
    assert updated(roll(member(1, B, on=A, instance_uid="another"))) == [("web-1", "Restart")]
    assert roll(member(1, B, on=A, restarting=True, ready=False)).update == ()


def test_three_revisions_live_and_each_machine_goes_straight_to_the_wanted_one() -> None:
    members = [member(1, C, on=C), member(2, B, on=A, restarting=True, ready=False, restart_request="vmi-web-2"), member(3, A)]
    plan = roll(*members, wanted=C, replicas=3)
    assert updated(plan) == [("web-2", "InPlace")]
    # Its instance is still of the oldest, so that the request to replace it stands.
    assert plan.update[0].document["metadata"]["annotations"]["herder.dev/restart-requested"] == "vmi-web-2"


def test_a_request_to_restart_outlives_an_update_between_two_instances() -> None:
    between = starting(1, B, instance_uid="", instance_revision="", restart_request="old", run=RunField("runStrategy", "Manual"))
    assert roll(between, wanted=C).update[0].document["metadata"]["annotations"]["herder.dev/restart-requested"] == "old"


# Run strategy

HALTED, ALWAYS = template(run={"runStrategy": "Halted"}), template(run={"runStrategy": "Always"})


def roll_run(before: Json, after: Json, one: Member) -> PoolPlan:
    of = pool(1, after, {"currentRevision": name_of(before)})
    return plan_pool(snapshot(of, one, wanted=after, stored=(before,)), NOW)


def test_always_to_halted_is_rolled_like_a_restart() -> None:
    members = [member(number, ALWAYS) for number in (1, 2, 3)]
    plan = plan_pool(snapshot(pool(3, HALTED), *members, wanted=HALTED, stored=(ALWAYS,)), NOW)
    assert [effect for _, effect in updated(plan)] == ["Stop"]
    stopping = member(1, HALTED, off=True, ready=False, run=RunField("runStrategy", "Halted"))
    assert plan_pool(snapshot(pool(3, HALTED), stopping, *members[1:], wanted=HALTED, stored=(ALWAYS,)), NOW).update == ()


def test_who_was_started_or_stopped_by_hand_stays_so_where_the_template_says_the_same_as_before() -> None:
    started = member(1, HALTED, run=RunField("running", True))
    after = template("2Gi", run={"running": False})
    plan = roll_run(HALTED, after, started)
    assert updated(plan) == [("web-1", "Restart")]
    assert plan.update[0].document["spec"]["running"] is True
    stopped = halted(1, ALWAYS)
    assert roll_run(ALWAYS, template("2Gi"), stopped).update[0].document["spec"]["runStrategy"] == "Halted"


def test_running_by_hand_is_said_as_a_run_strategy_first_where_there_is_no_word_for_it() -> None:
    manual = template(run={"runStrategy": "Manual"})
    plan = roll_run(ALWAYS, manual, member(1, ALWAYS, run=RunField("running", True)))
    assert plan.update[0].reword == {"spec": {"running": None, "runStrategy": "Always"}}
    assert "running" not in plan.update[0].document["spec"]


# Halting


def late(number: int, **changed: Any) -> Member:
    return starting(number, B, created=NOW - 9000, updated=NOW - 700, ready_revision=name_of(A), **changed)


def test_a_rollout_halts_when_an_updated_machine_is_not_available_in_time() -> None:
    plan = roll(late(1), *(member(number) for number in range(2, 9)))
    assert (updated(plan), progressing(plan)) == ([], ("False", "ProgressDeadlineExceeded"))
    message = next(one["message"] for one in plan.status["conditions"] if one["type"] == "Progressing")
    assert message.startswith(f"web-1 did not become available with revision {name_of(B)} in time")
    assert plan.status["failedRevision"] == name_of(B)
    assert [event.reason for event in plan.events] == ["ProgressDeadlineExceeded"]


def test_before_the_deadline_it_goes_on_and_looks_again_then() -> None:
    plan = roll(starting(1, B, updated=NOW - 590, created=NOW - 9000), *(member(number) for number in range(2, 9)))
    assert (len(plan.update), plan.next_look) == (1, 10)


def lost(seconds: float = 590.0, ago: float = 100.0, on: Json = B, **changed: Any) -> Member:
    """Updated 700 s ago; it was Ready for so many seconds, until that long ago."""
    return late(1, **{"last_ready": ReadyPeriod(name_of(on), NOW - ago - seconds, NOW - ago), **changed})


def back() -> Member:
    return msgspec.structs.replace(lost(), ready=True, ready_since=NOW - 5, running=True)


@pytest.mark.parametrize(
    ("one", "spec", "halts"),
    [
        pytest.param(lost(), {}, False, id="its node was restarted"),
        pytest.param(lost(40, ago=650), {}, True, id="and it did not come back in time"),
        pytest.param(lost(last_ready=ReadyPeriod(name_of(B), NOW - 690)), {}, False, id="it has not heard of it itself yet"),
        pytest.param(lost(5, crashed=True), {}, True, id="it is Ready for a moment, and crashes, again and again"),
        pytest.param(lost(5), {"minReadySeconds": 10}, True, id="it was Ready, and never available"),
        pytest.param(lost(15), {"minReadySeconds": 10}, False, id="it was available"),
        pytest.param(lost(8000, ago=695, on=A), {}, True, id="it was Ready on the revision before"),
        pytest.param(back(), {"minReadySeconds": 10}, False, id="it is back, and not yet for long enough"),
    ],
)
def test_a_machine_that_was_available_with_the_revision_has_the_whole_time_again(one: Member, spec: Json, halts: bool) -> None:
    plan = roll(one, *(member(number) for number in range(2, 5)), **spec)
    assert progressing(plan) == (("False", "ProgressDeadlineExceeded") if halts else ("True", "RollingOut"))


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_pool_whose_machines_are_all_updated_and_not_available_halts_as_well(replicas: int) -> None:
    plan = roll(*(late(number) for number in range(1, replicas + 1)), maxUnavailable="100%")
    assert progressing(plan) == ("False", "ProgressDeadlineExceeded")
    back = roll(*(late(number) for number in range(1, replicas + 1)), **proactive(onFailure="Rollback"))
    assert {one.revision for one in back.update} == {name_of(A)}


@pytest.mark.parametrize("instance", ["", "i"])
def test_a_machine_that_fails_on_a_revision_that_was_rolled_out_halts_nothing(instance: str) -> None:
    complete = {"currentRevision": name_of(B), "updateRevision": name_of(B)}
    plan = roll(member(1, B), late(2, instance_uid=instance), status=complete)
    assert progressing(plan) == ("True", "RolloutComplete")
    assert plan.events == ()


def test_a_rollout_back_to_the_last_template_is_complete_when_all_are_there_again() -> None:
    back = {"currentRevision": name_of(A), "updateRevision": name_of(B)}
    stuck = roll(member(1), late(2), wanted=A, status=back)
    assert progressing(stuck) == ("True", "RollingOut")
    on_the_way = roll(member(1), starting(2, A), wanted=A, status={**stuck.status, "updateRevision": name_of(A)})
    assert progressing(on_the_way) == ("True", "RollingOut")
    assert progressing(roll(member(1), member(2), wanted=A, status=on_the_way.status)) == ("True", "RolloutComplete")


@pytest.mark.parametrize("mended", [C, A], ids=["fixed", "reverted"])
def test_a_mended_or_reverted_template_goes_on_with_the_machine_that_was_stuck(mended: Json) -> None:
    plan = roll(late(1), *(member(number) for number in range(2, 9)), wanted=mended, status={"failedRevision": name_of(B)})
    assert plan.update[0].name == "web-1"
    assert plan.update[0].revision == name_of(mended)
    assert "failedRevision" not in plan.status


def test_a_halted_rollout_goes_on_when_the_machine_becomes_available_after_all() -> None:
    plan = roll(member(1, B), *(member(number) for number in (2, 3, 4)), status={"failedRevision": name_of(B)})
    assert len(plan.update) == 1


def test_on_failure_rollback_brings_machines_back_to_the_last_good_revision_and_stays_there() -> None:
    spec = proactive(onFailure="Rollback")
    members = [late(1), member(2, B), *(member(number) for number in (3, 4))]
    plan = roll(*members, **spec)
    assert ([(one.name, one.revision) for one in plan.update], progressing(plan)) == (
        [("web-1", name_of(A))],
        ("False", "RolledBack"),
    )
    later = roll(member(1), member(2, B), member(3), member(4), status={"failedRevision": name_of(B)}, **spec)
    assert [(one.name, one.revision) for one in later.update] == [("web-2", name_of(A))]
    assert roll(member(1), member(2), status={"failedRevision": name_of(B)}, **spec).update == ()


def test_a_rollback_stands_still_while_the_rollout_is_paused() -> None:
    spec = proactive(onFailure="Rollback", paused=True)
    assert roll(member(1, B), member(2), status={"failedRevision": name_of(B)}, **spec).update == ()


# What new machines get


@pytest.mark.parametrize(
    ("members", "spec", "wanted"),
    [
        ([member(1)], {}, B),
        ([late(1)], {}, A),
        ([member(1)], proactive(paused=True), A),
        ([member(1)], proactive(limit=0), A),
        ([member(1, B)], proactive(limit=1), A),
        ([member(1)], {"updateStrategy": {"unmanaged": {}}}, B),
        ([member(1)], {"updateStrategy": {"opportunistic": {}}}, B),
    ],
    ids=["rolling", "halted", "paused", "limit 0", "limit reached", "unmanaged", "opportunistic"],
)
def test_new_machines_get_the_last_good_revision_while_a_rollout_does_not_go_on(
    members: list[Member], spec: Json, wanted: Json
) -> None:
    assert [one.revision for one in roll(*members, replicas=2, **spec).create] == [name_of(wanted)]


def test_a_limit_counts_updates_and_new_machines_together() -> None:
    plan = roll(broken(1), broken(2), replicas=4, **proactive(limit=3))
    given = [one.revision for one in (*plan.update, *plan.create)]
    assert (given.count(name_of(B)), given.count(name_of(A))) == (3, 1)


@pytest.mark.parametrize(("limit", "most"), [(1, 1), ("50%", 2), ("10%", 1), ("0%", 0), (0, 0)])
def test_a_limit_is_how_many_may_have_the_new_revision(limit: Any, most: int) -> None:
    plan = roll(*(member(number) for number in range(1, 5)), maxUnavailable="100%", **proactive(limit=limit))
    assert len(plan.update) == most
    if most == 0:
        assert progressing(plan) == ("True", "RolloutLimited")


# Other strategies


def test_opportunistic_writes_to_all_and_stops_nobody() -> None:
    spec: Json = {"updateStrategy": {"opportunistic": {}}}
    plan = roll(member(1), halted(2), wanted=template("2Gi", run={"runStrategy": "Halted"}), **spec)
    assert updated(plan) == [("web-1", "InPlace"), ("web-2", "InPlace")]
    assert "herder.dev/restart-requested" not in plan.update[0].document["metadata"]["annotations"]
    assert plan.update[0].document["spec"]["runStrategy"] == "Always"


def test_unmanaged_touches_nobody_and_says_how_far_people_are() -> None:
    plan = roll(member(1), member(2, B), updateStrategy={"unmanaged": {}})
    assert (plan.update, plan.status["updatedReplicas"]) == ((), 1)


# Disks

OLD, NEW = template(disk="http://images/1"), template(disk="http://images/2")


def roll_disk(volumes: str, *members: Member, wanted: Json = NEW) -> PoolPlan:
    return plan_pool(
        snapshot(pool(len(members), wanted, **proactive(volumes=volumes)), *members, wanted=wanted, stored=(OLD, NEW)), NOW
    )


def test_a_changed_disk_is_kept_unless_asked_and_then_only_that_one_is_made_again() -> None:
    kept = roll_disk("Keep", member(1, OLD))
    assert (updated(kept), kept.destroys) == ([("web-1", "InPlace")], False)
    plan = roll_disk("Reprovision", member(1, OLD), member(2, OLD))
    assert [effect for _, effect in updated(plan)] == ["Restart"]
    assert plan.update[0].document["metadata"]["annotations"]["herder.dev/reprovision"] == f"disk-{plan.update[0].name[-1]}"
    assert plan.destroys


def test_a_disk_that_was_to_be_made_again_still_is_after_a_further_change() -> None:
    newer = template("2Gi", disk="http://images/2")
    asked = member(1, NEW, on=OLD, restarting=True, ready=False, reprovision=("disk",))
    annotations = roll_disk("Reprovision", asked, wanted=newer).update[0].document["metadata"]["annotations"]
    assert annotations["herder.dev/reprovision"] == "disk-1"
    assert "herder.dev/reprovision" not in roll_disk("Keep", asked, wanted=newer).update[0].document["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("volumes", "before", "wiped"),
    [
        pytest.param("Reprovision", name_of(OLD), ("disk-1",), id="it changed meanwhile"),
        pytest.param("Reprovision", name_of(NEW), (), id="it is the same"),
        pytest.param("Reprovision", "web-forgotten", (), id="nobody knows what it was"),
        pytest.param("Keep", name_of(OLD), (), id="disks are kept"),
    ],
)
def test_a_preserved_disk_whose_template_changed_meanwhile_is_made_again_where_that_is_asked_for(
    volumes: str, before: str, wiped: tuple[str, ...]
) -> None:
    kept = volume("web-1", name="disk-1", revision=before)
    other = volume("web-1", name="data-1", revision=before)
    of = pool(1, NEW, **proactive(volumes=volumes))
    plan = plan_pool(snapshot(of, wanted=NEW, stored=(OLD, NEW), volumes=(kept, other)), NOW)
    assert [(one.returning, one.wiped) for one in plan.create] == [(True, wiped)]
    assert plan.create[0].document["metadata"]["annotations"].get("herder.dev/reprovision", "") == ",".join(wiped)
    assert plan.destroys == bool(wiped)


def test_a_revision_of_which_a_disk_is_preserved_is_not_forgotten() -> None:
    of = pool(0, NEW, revisionHistoryLimit=0)
    assert (
        plan_pool(snapshot(of, wanted=NEW, stored=(OLD, NEW), volumes=(volume("web-1", revision=name_of(OLD)),)), NOW).forget == ()
    )


def test_a_machine_of_an_unknown_revision_is_brought_up_to_date() -> None:
    stranger = member(1, revision="", instance_revision="", ready_revision="")
    assert updated(roll(stranger, wanted=A)) == [("web-1", "Restart")]


def test_a_refused_update_waits_and_keeps_nobody_else_from_theirs() -> None:
    of = pool(8, B, **proactive(selectionPolicy={"basePolicy": "Oldest"}))
    refused = {"web-1": Refusal("spec.template: Invalid value", NOW + 30)}
    members = [member(number) for number in range(1, 9)]
    plan = plan_pool(snapshot(of, *members, wanted=B, stored=(A,), refusals=refused), NOW)
    assert [name for name, _ in updated(plan)] == ["web-2", "web-3"]
    assert plan.next_look == 30


def test_a_rollout_knows_since_when_it_goes_on() -> None:
    begun = {"updateRevision": name_of(B), "rollout": {"startedTime": at(-50)}}
    assert roll(member(1), status=begun).status["rollout"] == {"startedTime": at(-50)}
    assert roll(member(1), status={**begun, "updateRevision": name_of(A)}).status["rollout"] == {"startedTime": at(0)}
    assert "rollout" not in roll(member(1, B), status=begun).status
