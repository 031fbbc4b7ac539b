"""When a machine that does not start is deleted with its storage and made again."""

from __future__ import annotations

from typing import Any

import pytest

from herder.rules.pools import PoolPlan, plan_pool
from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import NodeState

from .things import NOW, A, B, Json, at, broken, halted, member, name_of, pool, snapshot, starting, volume


def heal(*members: Member, records: list[Json] | None = None, healing: Json | None = None, **more: Any) -> PoolPlan:
    spec: Json = {"autohealing": {} if healing is None else healing, **more.pop("spec", {})}
    wanted = more.pop("wanted", A)
    replicas = more.pop("replicas", len(members))
    of = pool(replicas, wanted, {"healing": records} if records else None, **spec)
    return plan_pool(snapshot(of, *members, wanted=wanted, stored=(A, B), **more), NOW)


def names(plan: PoolPlan) -> list[str]:
    return [one.name for one in plan.heal]


def record(name: str = "web-1", attempts: int = 1, healed: float = -20.0, retry: float = -10.0) -> Json:
    return {"name": name, "attempts": attempts, "lastHealedTime": at(healed), "retryAfterTime": at(retry)}


@pytest.mark.parametrize(
    ("one", "healed"),
    [
        (broken(1), True),
        (broken(1, failures=2), False),
        (starting(1, volume_failed=True), True),
        (starting(1), False),
        (member(1), False),
        (member(1, failures=5), False),
        (broken(1, deleting=True), False),
        (broken(1, off=True, halted=True), False),
        (broken(1, ready_revision=name_of(A)), True),
    ],
    ids=[
        *("threshold reached", "not yet", "volume failed for good", "waits", "ready", "ready again", "being deleted"),
        *("switched off by hand", "ready before on this very revision"),
    ],
)
def test_who_fails_to_start_again_and_again_is_made_again(one: Member, healed: bool) -> None:
    assert names(heal(one)) == (["web-1"] if healed else [])


def test_a_healed_machine_never_keeps_its_volumes() -> None:
    plan = heal(broken(1), spec={"scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}})
    assert [(one.preserve, one.uid, one.resource_version) for one in plan.heal] == [(False, "uid-web-1", "10")]


def test_without_autohealing_nobody_is_healed() -> None:
    assert plan_pool(snapshot(pool(1), broken(1)), NOW).heal == ()


def test_a_paused_pool_heals_nobody_and_forgets_no_record() -> None:
    plan = heal(broken(1), records=[record(retry=-5000)], spec={"paused": True})
    assert (plan.heal, [one["name"] for one in plan.status["healing"]]) == ((), ["web-1"])


def test_a_secret_of_one_machine_that_is_missing_is_no_failure_to_start() -> None:
    waiting = [starting(7), *(member(number) for number in range(1, 7))]
    assert (heal(*waiting).heal, heal(*waiting).remove) == ((), ())


# A template is never punished


def test_bad_template_with_autohealing_on_wipes_no_volume_of_a_machine_that_was_ready_on_an_earlier_revision() -> None:
    plan = heal(broken(1, B, ready_revision=name_of(A)), broken(2, B), wanted=B, spec={"maxUnavailable": 2})
    assert names(plan) == ["web-2"]
    withheld = next(one for one in plan.status["conditions"] if one["type"] == "HealingWithheld")
    assert "web-1" in withheld["message"]


def test_a_machine_that_was_ready_before_it_was_attached_is_not_wiped_for_the_template() -> None:
    attached = broken(1, B, ready_revision="none")
    assert heal(attached, wanted=B).heal == ()
    assert names(heal(broken(1, B), wanted=B)) == ["web-1"], "one that was never Ready is"


def test_a_machine_that_failed_on_a_bad_template_is_not_wiped_when_the_template_is_reverted() -> None:
    """Its failures are still on record when it is brought back to the revision on which it was ready."""
    back = broken(1, A, failures=9, ready_revision=name_of(A), failing_since=NOW - 600, updated=NOW - 5)
    assert heal(back).heal == ()
    since = broken(1, A, failures=3, ready_revision=name_of(A), failing_since=NOW - 60, updated=NOW - 100)
    assert names(heal(since)) == ["web-1"]


def test_a_volume_that_failed_for_good_does_not_cost_a_machine_that_was_ready_its_others() -> None:
    assert heal(starting(1, volume_failed=True, ready_revision=name_of(A))).heal == ()


@pytest.mark.parametrize("kept", [True, False], ids=["the pool still owns its volume", "it took its volume back"])
def test_a_template_changed_while_preserved_wipes_nothing(kept: bool) -> None:
    known: Json = {"volumes": (volume("web-1", ready_revision=name_of(A)),)} if kept else {}
    says: Json = {} if kept else {"ready_revision": name_of(A)}
    assert heal(broken(1, B, **says), wanted=B, **known).heal == ()
    assert names(heal(broken(1, A, **says), **known)) == ["web-1"]


def test_a_volume_that_would_outlive_its_machine_is_released_before_the_machine_is_healed() -> None:
    """A corrupted disk must not come back: somebody began to preserve it and was interrupted."""
    kept = volume("web-1", controller="uid-web-1")
    plan = heal(broken(1), volumes=(kept,), living=frozenset({"uid-web-1"}))
    assert (plan.heal, [one.name for one in plan.release]) == ((), ["disk-of-web-1"])


# How many, and when


def test_at_most_max_unavailable_are_healed_at_once() -> None:
    many = [broken(number) for number in range(1, 9)]
    assert len(names(heal(*many))) == 2
    assert len(names(heal(*many, records=[record("web-1", retry=100)]))) == 2
    gone = heal(*many[1:], replicas=8, records=[record("web-1")])
    assert len(names(gone)) == 1
    back = heal(starting(1), *many[1:], records=[record("web-1")])
    assert len(names(back)) == 1


def test_healing_is_part_of_the_burst() -> None:
    many = [broken(number) for number in range(1, 9)]
    assert len(names(heal(*many, spec={"maxUnavailable": "100%"}, burst=3))) == 3


def test_a_healed_machine_that_was_scaled_in_meanwhile_keeps_nobody_from_being_healed() -> None:
    plan = heal(broken(1), replicas=1, records=[record("web-2")])
    assert names(plan) == ["web-1"]


def test_a_record_of_a_machine_that_never_comes_back_goes_in_time() -> None:
    assert "healing" not in heal(member(1), records=[record("web-2", retry=-601)]).status
    plan = heal(member(1), records=[record("web-2", retry=-590)])
    assert (len(plan.status["healing"]), plan.next_look) == (1, 10)


def test_the_node_does_not_answer_and_nothing_is_wiped() -> None:
    nodes = {"node-1": NodeState({}, answers=False)}
    assert heal(broken(1, node="node-1"), nodes=nodes).heal == ()
    assert names(heal(broken(1, node="node-1"), nodes={"node-1": NodeState({})})) == ["web-1"]


@pytest.mark.parametrize(("attempts", "wait"), [(0, 10), (1, 20), (2, 40), (4, 160), (5, 300), (6, 300), (2_000_000_000, 300)])
def test_each_healing_doubles_the_wait_up_to_five_minutes(attempts: int, wait: float) -> None:
    plan = heal(broken(1, created=NOW - 15), records=[record(attempts=attempts)] if attempts else None)
    written = plan.status["healing"][0]
    assert written == {"name": "web-1", "attempts": attempts + 1, "lastHealedTime": at(0), "retryAfterTime": at(wait)}


def test_backoff_survives_the_leader_and_the_machine_because_it_is_in_the_status() -> None:
    plan = heal(broken(1, created=NOW - 15), records=[record(retry=70)])
    assert (plan.heal, plan.next_look, plan.status["healing"][0]["retryAfterTime"]) == ((), 70, at(70))


def test_a_clock_that_jumped_back_keeps_nobody_waiting_for_longer_than_the_longest_wait() -> None:
    written = heal(broken(1), records=[record(attempts=2, healed=3590, retry=3600)]).status["healing"][0]
    assert written["retryAfterTime"] == at(20)


def test_a_machine_that_was_ready_for_ten_minutes_has_recovered() -> None:
    assert "healing" not in heal(member(1, ready_since=NOW - 600), records=[record(attempts=7)]).status
    plan = heal(member(1, ready_since=NOW - 590), records=[record(attempts=7)])
    assert (len(plan.status["healing"]), plan.next_look) == (1, 10)


@pytest.mark.parametrize(("since", "healed"), [(-59, False), (-60, True)])
def test_a_machine_must_also_have_been_failing_for_so_long(since: float, healed: bool) -> None:
    plan = heal(broken(1, failing_since=NOW + since), healing={"minFailingDuration": "1m"})
    assert names(plan) == (["web-1"] if healed else [])
    assert healed or plan.next_look == 1


def test_records_are_bounded_and_the_next_one_waits() -> None:
    full = [record(f"web-{number}", retry=200) for number in range(2, 1002)]
    treated = [halted(number) for number in range(2, 1002)]
    plan = heal(broken(1), *treated, records=full, spec={"maxUnavailable": "100%"})
    assert (plan.heal, len(plan.status["healing"])) == ((), 1000)
    assert names(heal(broken(1), *treated[1:], records=full[1:], spec={"maxUnavailable": "100%"})) == ["web-1"]


def test_a_healing_that_was_written_down_and_not_carried_out_is_carried_out_at_once_and_counted_once() -> None:
    """Somebody wrote a word about the machine in that moment, or the leader was gone: it need not wait for the next turn."""
    noted = record(healed=-1.0, retry=9.0)
    plan = heal(broken(1, failing_since=NOW - 30.0), records=[noted])
    assert names(plan) == ["web-1"]
    assert plan.status["healing"] == [noted]
    made_since = broken(1, created=NOW - 0.5, failing_since=NOW - 0.2)
    assert names(heal(made_since, records=[noted])) == []
