"""Who watches is woken at once while it is quiet, together with others while it is not, and is never forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from herder.server.pacing import Pace
from herder.server.verbs import watch
from tests.unit.server.inside import config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
LONG = 3600.0


class Sleeper:
    def __init__(self) -> None:
        self.woken = 0
        self.event = asyncio.Event()

    def wake(self) -> None:
        self.woken += 1
        self.event.set()


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_while_it_is_quiet_nobody_waits() -> None:
    pace, sleepers = Pace(LONG, wake_ups=3), [Sleeper() for _ in range(3)]
    for sleeper in sleepers:
        pace.add(sleeper)
        await some_turns()
    assert [one.woken for one in sleepers] == [1, 1, 1]


async def test_when_the_wake_ups_are_spent_the_rest_waits() -> None:
    pace, first, second = Pace(LONG, wake_ups=1), Sleeper(), Sleeper()
    pace.add(first)
    await some_turns()
    pace.add(second)
    await some_turns()
    assert (first.woken, second.woken) == (1, 0)


async def test_those_who_wait_are_woken_together_at_the_end_of_the_while() -> None:
    pace, sleepers = Pace(0.02, wake_ups=1), [Sleeper() for _ in range(5)]
    for sleeper in sleepers:
        pace.add(sleeper)
        await some_turns()
    async with asyncio.timeout(20):
        await asyncio.gather(*(one.event.wait() for one in sleepers))
    assert [one.woken for one in sleepers] == [1] * 5


@pytest.mark.slow
async def test_a_watcher_gets_all_that_was_written_at_once_in_order(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as engine:
        events = engine.watch(f"{MAPS}?watch=1&resourceVersion={engine.store.revision}")
        waiting = asyncio.ensure_future(anext(events))
        await some_turns()
        names = [f"m-{number}" for number in range(100)]
        for name in names:
            assert (await engine.ask("POST", MAPS, config_map(name)))[0] == 201
        async with asyncio.timeout(20):
            seen = [await waiting, *[await anext(events) for _ in names[1:]]]
        assert [event["object"]["metadata"]["name"] for event in seen] == names


@pytest.mark.slow
async def test_a_watch_that_asked_for_no_bookmarks_sleeps_until_something_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.0)
    turns: list[float] = []
    time = watch.loop_time

    def counted() -> float:
        turns.append(time())
        return turns[-1]

    monkeypatch.setattr(watch, "loop_time", counted)
    async with engine_inside(tmp_path) as engine:
        events = engine.watch(f"{MAPS}?watch=1&resourceVersion={engine.store.revision}")
        waiting = asyncio.ensure_future(anext(events))
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(turns) < 10
        await engine.ask("POST", MAPS, config_map("news"))
        async with asyncio.timeout(20):
            assert (await waiting)["object"]["metadata"]["name"] == "news"
