"""Events may come in bursts, and not without end."""

from pathlib import Path
from typing import Any

import pytest

from herder.server.events.limits import Buckets, EventLimits, Rate
from herder.server.status import ApiError
from tests.unit.server.inside import StillWorld, engine_inside

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str, about: str = "p", component: str = "starter", namespace: str = "default") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": about, "namespace": namespace},
        "source": {"component": component},
    }


def admitted(limits: EventLimits, **about: str) -> int:
    """How many of the same go through before one is refused."""
    for number in range(1000):
        try:
            limits.admit(event("a", **about))
        except ApiError as error:
            assert (error.code, error.reason) == (429, "TooManyRequests")
            return number
    raise AssertionError("there is no end to it")


FIVE = Rate(5, 1.0)
HUNDRED = Rate(100, 10.0)


def limits_of(world: StillWorld, about: Rate = FIVE, inside: Rate = HUNDRED) -> EventLimits:
    return EventLimits(world.now, about, inside)


def test_one_source_may_say_so_much_about_one_object_and_then_waits() -> None:
    world = StillWorld()
    limits = limits_of(world)
    assert admitted(limits) == 5
    world.seconds += 2
    assert admitted(limits) == 2


@pytest.mark.parametrize("other", [{"about": "q"}, {"component": "stopper"}, {"namespace": "elsewhere"}], ids=str)
def test_others_are_not_held_back_by_one_who_says_too_much(other: dict[str, str]) -> None:
    limits = limits_of(StillWorld())
    admitted(limits)
    assert admitted(limits, **other) == 5


def test_a_namespace_has_a_limit_of_its_own_however_many_objects_are_talked_about() -> None:
    limits = limits_of(StillWorld(), inside=Rate(12, 1.0))
    assert [admitted(limits, about=f"p{number}") for number in range(4)] == [5, 5, 2, 0]
    assert admitted(limits, namespace="elsewhere") == 5


def test_what_the_namespace_refuses_costs_the_source_nothing() -> None:
    world = StillWorld()
    limits = limits_of(world, about=Rate(5, 0.0), inside=Rate(2, 1.0))
    assert admitted(limits) == 2
    world.seconds += 100
    assert admitted(limits) == 2
    world.seconds += 100
    assert admitted(limits) == 1


def test_a_clock_that_is_set_back_neither_gives_nor_takes() -> None:
    world = StillWorld()
    limits = limits_of(world)
    assert admitted(limits) == 5
    world.seconds -= 1000
    assert admitted(limits) == 0


def test_only_so_many_are_remembered() -> None:
    buckets = Buckets(Rate(5, 1.0), StillWorld().now, most=10)
    for number in range(50):
        buckets.take(number)
    assert len(buckets) == 10
    assert (buckets.left(0), buckets.left(49)) == (5, 4)


@pytest.mark.slow
async def test_the_engine_refuses_what_is_too_much_and_keeps_what_was_admitted(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as engine:
        codes = [(await engine.ask("POST", EVENTS, event(f"e{number}")))[0] for number in range(105)]
        assert codes == [201] * 100 + [429] * 5
        _, refused = await engine.ask("POST", EVENTS, event("more"))
        assert (refused["reason"], refused["code"]) == ("TooManyRequests", 429)
        assert refused["message"] == "Too many requests: limit reached for events of starter about Pod p"
        new = "/apis/events.k8s.io/v1/namespaces/default/events/e1"
        patch = {"metadata": {"labels": {"x": "y"}}}
        merge = "application/merge-patch+json"
        assert (await engine.ask("PATCH", new, patch, content_type=merge))[0] == 429
        assert (await engine.ask("PATCH", f"{new}?dryRun=All", patch, content_type=merge))[0] == 200
        assert (await engine.ask("DELETE", new))[0] == 200
        assert (await engine.ask("POST", EVENTS, event("other", about="q")))[0] == 201
