"""How many machines are made, and which are taken."""

from typing import Any

import pytest

from herder.rules.pools import plan_pool
from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.snapshot import Refusal

from .things import NOW, A, B, broken, halted, member, pool, snapshot, starting


def created(replicas: int, *members: Member, **more: Any) -> list[str]:
    return [one.name for one in plan_pool(snapshot(pool(replicas), *members, **more), NOW).create]


def removed(replicas: int, *members: Member, **spec: Any) -> list[str]:
    return [one.name for one in plan_pool(snapshot(pool(replicas, **spec), *members), NOW).remove]


OLDEST = {"scaleInStrategy": {"proactive": {"selectionPolicy": {"basePolicy": "Oldest"}}}}


def test_the_naming_walk_of_the_seed() -> None:
    three = [member(number, scale_in="first" if number == 2 else "") for number in (1, 2, 3)]
    assert removed(2, *three) == ["web-2"]
    assert created(4, three[0], three[2]) == ["web-2", "web-4"]


def test_a_detached_machine_keeps_its_number() -> None:
    assert created(2, member(1), held=frozenset({"web-2"})) == ["web-3"]


def test_a_machine_that_is_being_deleted_holds_its_place_and_its_name() -> None:
    assert created(2, member(1), member(2, deleting=True)) == []
    assert created(3, member(1), member(2, deleting=True)) == ["web-3"]


def test_the_place_of_one_that_is_being_deleted_is_free_while_its_node_does_not_answer() -> None:
    assert created(2, member(1), member(2, deleting=True), nodes={"node-1": NodeState({}, answers=False)}) == ["web-3"]


def test_owned_machines_with_other_names_are_not_touched_and_do_not_count() -> None:
    stray = member(None)
    assert created(1, stray) == ["web-1"]
    assert removed(0, stray) == []
    shown = plan_pool(snapshot(pool(0), stray), NOW).status
    assert [one["message"] for one in shown["conditions"] if one["type"] == "UnexpectedNames"] == [
        "not named web-<n> and never touched: stray"
    ]
    assert shown["replicas"] == 0


def test_never_is_not_taken_and_shows_as_surplus() -> None:
    plan = plan_pool(snapshot(pool(0), member(1, scale_in="never"), member(2)), NOW)
    assert ([one.name for one in plan.remove], plan.status["surplusReplicas"]) == (["web-2"], 1)


def test_first_goes_before_all_policies() -> None:
    assert removed(1, member(1, created=1.0), member(2, created=2.0, scale_in="first"), **OLDEST) == ["web-2"]


def test_a_machine_that_was_marked_goes_also_while_another_one_is_healed() -> None:
    plan = plan_pool(snapshot(pool(1, autohealing={}), member(1, scale_in="first"), broken(2)), NOW)
    assert ([one.name for one in plan.remove], [one.name for one in plan.heal]) == (["web-1"], ["web-2"])


@pytest.mark.parametrize(
    ("strategy", "taken", "surplus"),
    [({"unmanaged": {}}, [], 2), ({"opportunistic": {}}, ["web-3"], 1), ({"proactive": {}}, ["web-3", "web-2"], 0)],
)
def test_a_strategy_says_who_may_be_taken(strategy: dict[str, Any], taken: list[str], surplus: int) -> None:
    plan = plan_pool(snapshot(pool(1, scaleInStrategy=strategy), member(1), starting(2), halted(3)), NOW)
    assert ([one.name for one in plan.remove], plan.status["surplusReplicas"]) == (taken, surplus)
    assert all(one.resource_version and one.uid for one in plan.remove)


def test_not_more_than_a_burst_are_on_their_way_at_once() -> None:
    assert len(created(9, burst=4)) == 4
    assert len(created(9, starting(1), starting(2), burst=4)) == 2
    assert created(9, starting(1), starting(2), burst=2) == []
    # Running, halted, or failing for itself: not on their way.
    assert len(created(9, member(1), halted(2), broken(3), burst=4)) == 4
    five = [member(number) for number in range(1, 6)]
    assert len(plan_pool(snapshot(pool(0), *five, burst=2), NOW).remove) == 2


def test_a_pool_that_has_no_room_can_be_made_smaller() -> None:
    members = [member(1, created=9.0), *(starting(number, created=5.0) for number in (2, 3, 4))]
    newest: dict[str, Any] = {"scaleInStrategy": {"proactive": {"selectionPolicy": {"basePolicy": "Newest"}}}}
    plan = plan_pool(snapshot(pool(1, **newest), *members, burst=3), NOW)
    assert [one.name for one in plan.remove] == ["web-1", "web-2", "web-3"]
    going = [member(number, deleting=True) for number in (5, 6)]
    assert len(plan_pool(snapshot(pool(1, **newest), *members, *going, burst=3), NOW).remove) == 1


def test_a_quota_that_refuses_the_fifth_create_stalls_nobody_else() -> None:
    four = [member(number) for number in (1, 2, 3, 4)]
    refused = {"web-5": Refusal("exceeded quota", NOW + 20)}
    plan = plan_pool(snapshot(pool(6), *four, refusals=refused), NOW)
    assert ([one.name for one in plan.create], plan.next_look) == (["web-6"], 20)
    failure = next(one for one in plan.status["conditions"] if one["type"] == "ReplicaFailure")
    assert failure["message"] == "web-5: exceeded quota"
    assert created(5, *four, refusals={"web-5": Refusal("exceeded quota", NOW)}) == ["web-5"]


def test_what_was_refused_to_a_machine_that_nobody_wants_any_more_is_not_shown() -> None:
    plan = plan_pool(snapshot(pool(1), member(1), refusals={"web-2": Refusal("exceeded quota", NOW + 20)}), NOW)
    assert "ReplicaFailure" not in [one["type"] for one in plan.status["conditions"]]
    assert plan.next_look is None


def test_a_pool_of_none_makes_and_takes_nothing_more() -> None:
    plan = plan_pool(snapshot(pool(0)), NOW)
    assert (plan.create, plan.remove, plan.update, plan.status["currentRevision"]) == ((), (), (), plan.status["updateRevision"])


def test_replicas_lowered_in_mid_rollout_are_taken_and_count_no_more() -> None:
    members = [member(1, B, on=B), member(2, A, scale_in="first"), member(3, A), member(4, A)]
    plan = plan_pool(snapshot(pool(3, B), *members, wanted=B, stored=(A,)), NOW)
    assert [one.name for one in plan.remove] == ["web-2"]
    assert len(plan.update) == 1
    assert plan.update[0].name in ("web-3", "web-4")
