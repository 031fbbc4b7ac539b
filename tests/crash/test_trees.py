"""`herder up` as a whole: its engine killed, all of it killed, or only the one who watches over the rest."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.crash.trees import children_of
from tests.crash.writing import NAMESPACE, Book, WritingClient
from tests.engines.api import Api, connect
from tests.engines.embedded import run_embedded
from tests.engines.resources import CONFIG_MAPS

pytestmark = pytest.mark.slow
WRITERS = 3


def supervisors(folder: Path) -> list[int]:
    return children_of(os.getpid(), "up", str(folder / "data"))


def engines(folder: Path) -> list[int]:
    return children_of(os.getpid(), "engine", str(folder / "data"))


def kill(pids: list[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def running(folder: Path) -> AsyncGenerator[Api]:
    # That of the life before names a port that is gone.
    (folder / "kubeconfig").unlink(missing_ok=True)
    with run_embedded(folder) as engine:
        async with connect(engine) as api:
            yield api


async def stored(api: Api) -> dict[str, str]:
    items = (await api.list(CONFIG_MAPS, NAMESPACE)).items
    return {item["metadata"]["name"]: item["data"]["a"] for item in items if item["metadata"]["name"].startswith("w")}


class Acknowledged(Book):
    """Of writers that were cut off: what must be there, and what may be instead."""

    def check(self, found: dict[str, str]) -> None:
        for name, steps in self.steps.items():
            last = steps[-1]
            wanted = None if last.kind == "DELETED" else last.value
            attempted = self.attempts.get(name, (None, None))
            allowed = {wanted} | ({None if attempted[0] == "DELETED" else attempted[1]} if attempted[0] else set())
            assert found.get(name) in allowed, (name, found.get(name), allowed)


def write_until_cut_off(api: Api, first: int, book: Acknowledged) -> list["asyncio.Task[None]"]:
    return [asyncio.create_task(WritingClient(api, book, first + number).run_until_lost()) for number in range(WRITERS)]


async def test_an_engine_that_is_killed_is_started_again_by_itself(tmp_path: Path) -> None:
    book, stop = Acknowledged(), asyncio.Event()
    async with running(tmp_path) as api:
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(WritingClient(api, book, number).run(stop))
            for _ in range(3):
                await book.more(20, patience=60)
                kill(engines(tmp_path))
            # The same writers go on, at the same address.
            await book.more(20, patience=60)
            stop.set()
        book.check(await stored(api))


@pytest.mark.parametrize("whom", ["everyone", "only the supervisor"])
async def test_what_was_acknowledged_is_there_after_a_new_start(tmp_path: Path, whom: str) -> None:
    """Also when the engine of the life before has not quite ended yet."""
    books: list[Acknowledged] = []
    for life in range(4):
        async with running(tmp_path) as api:
            found = await stored(api)
            for book in books:
                book.check(found)
            books.append(Acknowledged())
            writing = write_until_cut_off(api, life * WRITERS, books[-1])
            await books[-1].more(20)
            kill(supervisors(tmp_path) + (engines(tmp_path) if whom == "everyone" else []))
            await _hang_up(writing)


async def _hang_up(writing: list["asyncio.Task[None]"]) -> None:
    """At once: the next `herder up` should meet what is left of this one."""
    for task in writing:
        task.cancel()
    for problem in await asyncio.gather(*writing, return_exceptions=True):
        assert problem is None or isinstance(problem, asyncio.CancelledError), problem
