"""QEMUs that stand still when an agent starts: they hold up nobody else, are named, and are spoken to again once they answer."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from herder.nodes.runtimes.qemu import adopting, qmp
from herder.nodes.runtimes.qemu.strays import end_strays
from tests.e2e.program import is_running
from tests.e2e.qemu.node import Node
from tests.engines.waiting import eventually


@contextmanager
def stopped(*pids: int) -> Generator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    except BaseException:
        # A test that fails has nobody any more who would end them.
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        raise
    for pid in pids:
        if is_running(pid):
            os.kill(pid, signal.SIGCONT)


async def test_all_are_greeted_side_by_side_and_those_that_hang_are_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    guests = [await node.start() for _ in range(3)]
    pids = {guest: node.pid(guest) for guest in guests}
    await node.runtime.close()
    monkeypatch.setattr(qmp, "PATIENCE", 1000.0)
    monkeypatch.setattr(adopting, "NAMED_AFTER", 0.1)
    greeted: set[str] = set()
    connect = qmp.connect

    def noted(path: Path) -> socket.socket:
        greeted.add(path.parent.name)
        return connect(path)

    monkeypatch.setattr(qmp, "connect", noted)
    with capture_logs() as said:
        with stopped(*(pids[guest] for guest in guests[:2])):
            opening = asyncio.create_task(node.reopen())

            async def all_of_them() -> bool:
                return greeted == set(guests) and bool(said)

            await eventually(all_of_them, 30)
            assert not opening.done()
        async with asyncio.timeout(60):
            await opening
    (line,) = [one for one in said if "guests" in one]
    assert (line["guests"], line["log_level"]) == (", ".join(sorted(guests[:2])), "warning")
    assert [node.status(guest).state for guest in guests] == ["Running"] * 3


async def test_one_that_is_late_is_spoken_to_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = await node.start()
    await node.runtime.close()
    monkeypatch.setattr(qmp, "PATIENCE", 0.5)
    with stopped(node.pid(guest)):
        async with asyncio.timeout(60):
            await node.reopen()
        assert (node.status(guest).state, node.status(guest).message) == ("Running", "QEMU does not answer")
        # More often than QEMU's socket has places for those who wait: nobody stands still because of that.
        tries: list[Path] = []
        connect = qmp.connect
        monkeypatch.setattr(qmp, "connect", lambda path: tries.append(path) or connect(path))

        async def often() -> bool:
            return len(tries) >= 4

        await eventually(often, 60)
    monkeypatch.setattr(qmp, "PATIENCE", 30.0)

    async def answers() -> bool:
        await node.runtime.pause(guest)
        return node.status(guest).state == "Paused"

    await eventually(answers, 60)


async def test_those_that_nobody_keeps_are_ended_side_by_side(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    guests = [await node.start() for _ in range(2)]
    pids = [node.pid(guest) for guest in guests]
    await node.runtime.close()
    monkeypatch.setattr(qmp, "PATIENCE", 1.0)
    with stopped(*pids):
        async with asyncio.timeout(60):
            assert await end_strays(node.folder / "guests" / guest for guest in guests) == 2
    assert not any(map(is_running, pids))
    await node.open()
