"""A machine that somebody named is updated before its turn: outside the order, and within maxUnavailable."""

import pytest

from herder.rules.pools.plan import PoolPlan, plan_pool
from tests.unit.rules.pools.objects import NEW, NOW, OLD, Json, machine, snapshot, written

DONE = {"currentRevision": OLD.name, "updateRevision": OLD.name}


def planned(*, asked: str = "web-3", not_ready: tuple[str, ...] = (), updated: tuple[str, ...] = (), **spec: object) -> PoolPlan:
    marks: dict[str, Json] = {
        name: {"update_requested": NEW.name} if name == asked else {} for name in ("web-1", "web-2", "web-3", "web-4")
    }
    machines = [machine(name, revision=NEW.name if name in updated else OLD.name, **mark) for name, mark in marks.items()]
    document = written(4, DONE, memory="96Mi", **spec)
    return plan_pool(snapshot(document, machines, not_ready=not_ready, known=(OLD, NEW)), NOW)


def oldest(**more: object) -> Json:
    return {"proactive": {"selectionPolicy": {"basePolicy": "Oldest"}, **more}}


def restarted(plan: PoolPlan) -> list[str]:
    return [one.name for one in plan.update if one.effect == "Restart"]


def test_it_goes_before_those_that_the_policy_would_take() -> None:
    assert restarted(planned(updateStrategy=oldest())) == ["web-3"]
    assert restarted(planned(asked="", updateStrategy=oldest())) == ["web-1"]


def test_not_while_as_many_as_may_be_are_unavailable() -> None:
    assert "web-3" not in restarted(planned(not_ready=("web-1",), updateStrategy=oldest(paused=True)))
    assert restarted(planned(not_ready=("web-1",), updateStrategy=oldest(paused=True), maxUnavailable=2)) == ["web-3"]


@pytest.mark.parametrize("strategy", [oldest(paused=True), {"unmanaged": {}}, {"opportunistic": {}}])
def test_also_where_nobody_else_is_restarted(strategy: Json) -> None:
    assert restarted(planned(updateStrategy=strategy)) == ["web-3"]
    assert restarted(planned(asked="", updateStrategy=strategy)) == []


@pytest.mark.parametrize("paused", [False, True])
def test_it_is_the_one_that_a_limit_leaves_room_for(paused: bool) -> None:
    limited: Json = {"updateStrategy": oldest(limit=2, paused=paused), "maxUnavailable": 4}
    assert restarted(planned(updated=("web-1",), **limited)) == ["web-3"]
    assert restarted(planned(updated=("web-1", "web-2"), **limited)) == [], "beyond the limit nobody gets it"


def test_a_wish_for_another_revision_than_the_template_has_is_none() -> None:
    machines = [machine("web-1"), machine("web-2", update_requested="web-0000000000")]
    document = written(2, DONE, memory="96Mi", updateStrategy=oldest())
    assert restarted(plan_pool(snapshot(document, machines, known=(OLD, NEW)), NOW)) == ["web-1"]
