"""kill -9 under load, over and over: nothing acknowledged is lost, nothing is half there, and watchers miss nothing."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.crash.lives import Lives, many_lives
from tests.crash.observing import Paging, Watching, replayed
from tests.crash.writing import NAMESPACE, Book, WritingClient
from tests.engines.api import Api, connect
from tests.engines.resources import CONFIG_MAPS

pytestmark = pytest.mark.slow
KILLS = 100
WRITERS = 6
WATCHERS = 3


async def kill_often(lives: Lives, book: Book, chance: random.Random) -> None:
    """Mostly after some writes; now and then a moment after it is ready, or while it is still starting."""
    while lives.kills < KILLS:
        await lives.start()
        when = chance.random()
        if when < 0.15:
            await asyncio.sleep(chance.uniform(0.02, 0.4))
        else:
            await lives.ready()
            if when > 0.3:
                await book.more(chance.randint(1, 40))
            await asyncio.sleep(chance.uniform(0, 0.02))
        await lives.kill()
    await lives.start()
    await lives.ready()


@contextlib.asynccontextmanager
async def everyone(lives: Lives) -> AsyncGenerator[list[Api]]:
    """Each client with connections of its own."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(lives.engine)) for _ in range(WRITERS + WATCHERS + 1)]


async def test_a_hundred_kills_under_load_lose_and_double_nothing(tmp_path: Path) -> None:
    book = Book()
    async with many_lives(tmp_path) as lives, everyone(lives) as apis:
        await lives.start()
        await lives.ready()
        start = (await apis[0].list(CONFIG_MAPS, NAMESPACE)).ok["metadata"]["resourceVersion"]
        await lives.kill()
        writers = [WritingClient(api, book, number) for number, api in enumerate(apis[:WRITERS])]
        watchers = [Watching(api, start, bookmarks=index == 0) for index, api in enumerate(apis[WRITERS:-1])]
        paging = Paging(apis[-1], book)
        stop, upto = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            for watcher in watchers:
                group.create_task(watcher.run(upto))
            working = [group.create_task(client.run(stop)) for client in (*writers, paging)]
            await kill_often(lives, book, random.Random(20))
            stop.set()
            await asyncio.wait(working)
            final = (await apis[0].list(CONFIG_MAPS, NAMESPACE)).ok
            # Something to see for those who wait for the end of a deletion, whose revision no answer has told.
            upto.set_result(max(step.revision or 0 for steps in book.steps.values() for step in steps))
        await lives.kill()
    _check(book, watchers, paging, {item["metadata"]["name"]: item["data"]["a"] for item in final["items"]})
    _check_file(tmp_path / "data" / "herder.db")
    _check_enough_happened(book, lives, watchers)


def _check_enough_happened(book: Book, lives: Lives, watchers: list[Watching]) -> None:
    """A test that wrote nothing would find nothing wrong."""
    assert lives.kills >= KILLS
    assert book.acknowledged > 5 * KILLS
    assert book.unanswered > KILLS / 2
    assert book.unanswered_but_applied > 0
    assert all(watcher.connections > KILLS / 2 for watcher in watchers)


def _check(book: Book, watchers: list[Watching], paging: Paging, final: dict[str, str]) -> None:
    longest = max(watchers, key=lambda watcher: len(watcher.saw)).saw
    for watcher in watchers:
        # One may have stopped listening a little earlier than another.
        assert watcher.saw == longest[: len(watcher.saw)]
    for name, steps in book.steps.items():
        events = [event for event in longest if event.name == name]
        told = [(step.kind, step.value) for step in steps]
        assert [(event.kind, event.value) for event in events] == told[: len(events)]
        # Only deletions at the very end, whose revision nobody told, may be missing.
        assert all(step.kind == "DELETED" for step in steps[len(events) :])
        for event, step in zip(events, steps, strict=False):
            assert step.revision in (None, event.revision)
    for snapshot in paging.snapshots:
        if snapshot.revision <= longest[-1].revision:
            assert snapshot.objects == replayed(longest, snapshot.revision)
    assert final == {name: steps[-1].value for name, steps in book.steps.items() if steps[-1].kind != "DELETED"}


def _check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
