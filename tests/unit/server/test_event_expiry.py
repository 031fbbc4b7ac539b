"""Events go an hour after they were last written, and nothing else does."""

from pathlib import Path
from typing import Any

import pytest

from herder.server.housekeeping.expiry import KEEP_SECONDS, SLICE, Expiry
from tests.unit.server.inside import Inside, StillWorld, config_map, engine_inside

EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


def event(name: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": name, "namespace": "default"}
    return {"metadata": {"name": name, **more}, "involvedObject": about, "reason": "Started"}


async def names(engine: Inside) -> list[str]:
    _, listed = await engine.ask("GET", EVENTS)
    return [item["metadata"]["name"] for item in listed["items"]]


async def expire(engine: Inside) -> int:
    return await engine.running.expiry.expire()


@pytest.mark.slow
async def test_an_event_goes_an_hour_after_its_last_write(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        for name in ("old", "touched"):
            assert (await engine.ask("POST", EVENTS, event(name)))[0] == 201
        await engine.ask("POST", "/api/v1/namespaces/default/configmaps", config_map("stays"))
        world.seconds += KEEP_SECONDS - 1
        assert await expire(engine) == 0
        assert (await engine.ask("PATCH", f"{EVENTS}/touched", {"count": 2}, content_type=MERGE))[0] == 200
        world.seconds += 1
        assert await expire(engine) == 1
        assert await names(engine) == ["touched"]
        world.seconds += KEEP_SECONDS - 1
        assert await expire(engine) == 1
        assert await names(engine) == []
        assert (await engine.ask("GET", "/api/v1/namespaces/default/configmaps/stays"))[0] == 200


@pytest.mark.slow
async def test_watchers_are_told(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        watch = engine.watch(f"{EVENTS}?watch=true")
        await engine.ask("POST", EVENTS, event("a"))
        assert (await anext(watch))["type"] == "ADDED"
        world.seconds += KEEP_SECONDS
        await expire(engine)
        gone = await anext(watch)
        assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")


async def test_a_finalizer_does_not_hold_an_event(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        await engine.ask("POST", EVENTS, event("a", finalizers=["example.com/hold"]))
        world.seconds += KEEP_SECONDS
        await expire(engine)
        assert await names(engine) == []


@pytest.mark.slow
async def test_after_a_restart_the_times_in_the_events_decide(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        await engine.ask("POST", EVENTS, event("first"))
        await engine.ask("POST", EVENTS, event("touched"))
        world.seconds += 1800
        await engine.ask("PATCH", f"{EVENTS}/touched", {"count": 2}, content_type=MERGE)
        far = {**event("from-the-future"), "lastTimestamp": "2999-01-01T00:00:00Z"}
        await engine.ask("POST", EVENTS, far)
    world.seconds += 1800
    async with engine_inside(tmp_path, world) as engine:
        assert await expire(engine) == 1
        assert sorted(await names(engine)) == ["from-the-future", "touched"]
        world.seconds += KEEP_SECONDS
        assert await expire(engine) == 2


@pytest.mark.slow
async def test_many_go_slice_by_slice(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        for number in range(SLICE + 50):
            await engine.ask("POST", EVENTS, event(f"e{number}"))
        world.seconds += KEEP_SECONDS
        assert [await expire(engine), await expire(engine), await expire(engine)] == [SLICE, 50, 0]


@pytest.mark.slow
async def test_one_that_is_written_to_while_it_expires_stays(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        await engine.ask("POST", EVENTS, event("a"))
        served = engine.running.engine.served("", "v1", "events")
        looked_at = engine.store.get("events", "default/a")
        assert looked_at is not None
        await engine.ask("PATCH", f"{EVENTS}/a", {"count": 2}, content_type=MERGE)
        await engine.running.engine.writes.expire(served, looked_at)
        assert await names(engine) == ["a"]


@pytest.mark.slow
async def test_how_long_they_stay_can_be_chosen(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as engine:
        expiry = Expiry(engine.running.engine, keep=5)
        await engine.ask("POST", EVENTS, event("a"))
        world.seconds += 5
        assert await expiry.expire() == 1
