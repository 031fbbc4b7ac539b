"""Guests outlive their agent, however it ended, and the next one knows what became of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
import pytest

from herder.api import reasons
from herder.nodes.runtimes.qemu import RunAs
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.process import start_time
from tests.e2e.program import is_running, until
from tests.e2e.qemu.node import Node


@pytest.fixture
async def killed(node: Node, facts: Facts, run_as: RunAs | None, guest: Path) -> str:
    """A guest whose agent was killed the moment after it had started it."""
    uid = str(uuid.uuid4())
    known = msgspec.json.encode(facts).decode(), msgspec.json.encode(run_as).decode()
    command = [sys.executable, "-m", "tests.e2e.qemu.agent", str(node.folder), *known, str(guest), uid, "rate=50"]
    agent = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert agent.stdout is not None
    assert await agent.stdout.readline() == b"started\n"
    agent.kill()
    await agent.wait()
    return uid


async def test_a_guest_outlives_the_agent_and_is_found_again(node: Node, killed: str) -> None:
    pid = node.pid(killed)
    assert is_running(pid)
    await node.reopen()
    found = node.status(killed)
    assert (found.state, node.pid(killed)) == ("Running", pid)
    assert found.started is not None and found.started_at is not None
    await node.ticked(killed, 3)
    await node.runtime.pause(killed)
    assert node.status(killed).state == "Paused"
    await node.runtime.resume(killed)
    await node.runtime.shut_down(killed)
    assert (await node.becomes(killed, "ShutDown")).reason == reasons.GUEST_SHUT_DOWN


async def test_an_adopted_guest_that_is_killed_has_crashed(node: Node, killed: str) -> None:
    await node.reopen()
    os.kill(node.pid(killed), signal.SIGKILL)
    assert (await node.becomes(killed, "Crashed")).reason == reasons.GUEST_CRASHED


async def test_a_removed_adopted_guest_is_gone(node: Node, killed: str) -> None:
    pid = node.pid(killed)
    await node.reopen()
    await node.runtime.remove(killed)
    assert not is_running(pid)
    assert list((node.folder / "guests").iterdir()) == []


async def test_a_guest_is_found_though_nobody_wrote_down_its_process(node: Node, killed: str) -> None:
    pid = node.pid(killed)
    (node.folder / "guests" / killed / "process.json").unlink()
    await node.reopen()
    assert node.status(killed).state == "Running"
    assert node.pid(killed) == pid


async def test_how_a_guest_ended_without_an_agent_is_known_to_the_next(node: Node) -> None:
    off, panicked, dead = (
        await node.start("rate=100 exit-after=30"),
        await node.start("rate=100 panic-after=30"),
        await node.start(),
    )
    await node.runtime.close()
    os.kill(node.pid(dead), signal.SIGKILL)
    log = {guest: node.folder / "guests" / guest / "console.log" for guest in (off, panicked)}
    until(lambda: all("tick 30" in path.read_text() for path in log.values()), "the guests did not get there", 60)
    await node.reopen()
    states = {guest: (await node.until(guest, lambda s: s.state != "Running")).state for guest in (off, panicked, dead)}
    assert states == {off: "ShutDown", panicked: "Crashed", dead: "Crashed"}


async def test_an_end_is_remembered(node: Node) -> None:
    guest = await node.start("rate=50 exit-after=2")
    ended = await node.becomes(guest, "ShutDown")
    await node.reopen()
    assert node.status(guest) == ended
    assert len(await node.ticks(guest)) == 2


async def test_another_process_with_the_same_number_is_never_touched(node: Node) -> None:
    guest = await node.start()
    os.kill(node.pid(guest), signal.SIGKILL)
    await node.becomes(guest, "Crashed")
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        folder = node.folder / "guests" / guest
        record = msgspec.json.decode((folder / "process.json").read_bytes())
        (folder / "process.json").write_bytes(msgspec.json.encode({**record, "pid": stranger.pid}))
        assert start_time(stranger.pid) != record["start_time"]
        await node.reopen()
        await node.runtime.remove(guest)
        assert is_running(stranger.pid)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_start_that_never_happened_leaves_nothing(node: Node) -> None:
    folder = node.folder / "guests" / "half"
    folder.mkdir()
    (folder / ".guest.json.new").write_text("{")
    await node.reopen()
    assert node.runtime.guests() == []
    assert not folder.exists()


async def test_a_machine_that_was_restarted_has_lost_its_guests(node: Node) -> None:
    guest = await node.start()
    pid = node.pid(guest)
    await node.runtime.close()
    path = node.folder / "guests" / guest / "process.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "boot_id": "an earlier one"}))
    os.kill(pid, signal.SIGKILL)
    until(lambda: start_time(pid) is None, "it does not end", 30)  # else it is found by its folder, and taken for what it is
    await node.reopen()
    assert (node.status(guest).state, node.status(guest).reason) == ("Failed", reasons.GUEST_LOST)


async def test_no_guest_outlives_a_node_that_is_shut_down(node: Node) -> None:
    obeys, ignores = await node.start(), await node.start("rate=50 power-button=ignore")
    await node.ticked(obeys, 1)
    await node.ticked(ignores, 1)
    pids = [node.pid(guest) for guest in (obeys, ignores)]
    await node.runtime.end_all(patience=2.0)
    assert not any(is_running(pid) for pid in pids)
    assert node.status(obeys).state == "ShutDown"
    assert (node.status(ignores).state, node.status(ignores).reason) == ("Failed", reasons.SWITCHED_OFF)
