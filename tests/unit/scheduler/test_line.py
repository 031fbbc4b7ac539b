"""Who is looked at first, and when again."""

from __future__ import annotations

import asyncio

from herder.kube.resources import Key
from herder.scheduler.line import Line
from tests.unit.kube.virtual import in_virtual_time


def key(name: str) -> Key:
    return Key("default", name)


def test_the_more_important_first_then_the_older() -> None:
    async def scenario() -> list[str]:
        line = Line()
        for name, priority, created in (("young", 0, 20.0), ("old", 0, 10.0), ("high", 5, 30.0), ("same", 0, 20.0)):
            line.add(key(name), priority, created)
        return [(await line.get()).name for _ in range(4)]

    assert in_virtual_time(scenario()) == ["high", "old", "young", "same"]


def test_those_that_failed_come_back_later_each_time_until_they_are_forgotten() -> None:
    async def scenario() -> list[float]:
        line, clock = Line(), asyncio.get_running_loop().time
        waits: list[float] = []
        for attempt in range(7):
            if attempt == 6:
                line.forget(key("p"))
            began = clock()
            line.add_later(key("p"), 0, 0.0)
            await line.get()
            waits.append(round(clock() - began))
            line.failed(key("p"))
        return waits

    assert in_virtual_time(scenario()) == [0, 1, 2, 4, 8, 10, 0]


def test_one_that_was_removed_is_passed_over() -> None:
    async def scenario() -> str:
        line = Line()
        line.add(key("gone"), 9, 0.0)
        line.remove(key("gone"))
        line.add(key("there"), 0, 0.0)
        return (await line.get()).name

    assert in_virtual_time(scenario()) == "there"
