"""The whole plan: what goes together in one value."""

from herder.rules.pools import plan_pool

from .things import NOW, A, B, broken, member, pool, snapshot, starting


def test_machines_are_listed_live_before_anything_is_deleted_or_wiped() -> None:
    assert plan_pool(snapshot(pool(0), member(1)), NOW).destroys
    assert plan_pool(snapshot(pool(1, autohealing={}), broken(1)), NOW).destroys
    assert not plan_pool(snapshot(pool(2, B), member(1), wanted=B, stored=(A,)), NOW).destroys


def test_one_machine_is_never_in_two_parts_of_a_plan() -> None:
    members = [broken(1), broken(2, scale_in="first"), member(3), starting(4), member(5)]
    of = pool(4, B, autohealing={}, maxUnavailable="100%")
    plan = plan_pool(snapshot(of, *members, wanted=B, stored=(A,)), NOW)
    touched = [one.name for one in (*plan.heal, *plan.remove, *plan.update, *plan.create)]
    assert len(touched) == len(set(touched))
    assert "web-2" in [one.name for one in plan.remove]


def test_a_scale_in_is_not_bound_by_max_unavailable() -> None:
    assert len(plan_pool(snapshot(pool(1), *(member(number) for number in range(1, 9))), NOW).remove) == 7


def test_an_update_sees_who_is_healed_and_taken_in_the_same_plan() -> None:
    of = pool(4, B, autohealing={})
    members = [broken(1), *(member(number) for number in (2, 3, 4))]
    assert plan_pool(snapshot(of, *members, wanted=B, stored=(A,)), NOW).update == ()


def test_an_idle_pool_has_nothing_to_do_and_nothing_to_wait_for() -> None:
    plan = plan_pool(snapshot(pool(2), member(1), member(2)), NOW)
    assert (plan.create, plan.update, plan.remove, plan.heal, plan.release, plan.next_look) == ((), (), (), (), (), None)
