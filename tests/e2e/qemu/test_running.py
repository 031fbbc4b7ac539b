"""The life of a guest: started, paused, ended in all the ways in which it can end, and found again by the next agent."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
from pathlib import Path

import pytest

from herder.api import reasons
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import process
from herder.nodes.runtimes.qemu.trimming import BLOCK, trim
from tests.e2e.guest.machine import assert_unbroken
from tests.e2e.program import is_running
from tests.e2e.qemu.node import Node, order


async def test_a_guest_starts_and_counts(node: Node) -> None:
    guest = await node.start()
    assert node.status(guest).state == "Running"
    await node.ticked(guest, 5)
    assert_unbroken((await node.text(guest)).rpartition("tick")[0])
    assert guest in node.told


async def test_what_it_was_started_as_is_told(node: Node, accelerator: str) -> None:
    guest = await node.start(domain={"cpu": {"model": "Nehalem", "sockets": 1, "cores": 3, "threads": 1}}, memory="96Mi")
    await node.says(guest, "ram=96M usable=.*")
    await node.says(guest, "cpus=3 cpu=.*Nehalem.*")
    started = node.status(guest).started
    assert started is not None and started.cpu is not None
    assert started.machine_type.startswith("pc-q35-")
    assert (started.runtime, started.accelerator, started.memory_bytes) == ("qemu", accelerator, 96 << 20)
    assert (started.cpu.model, started.cpu.cores) == ("Nehalem", 3)
    assert node.status(guest).started_at is not None


async def test_what_a_guest_takes_of_its_node_is_told(node: Node) -> None:
    busy, paused = await node.start("rate=50 dirty=64M/s"), await node.start(spec={"startStrategy": "Paused"})
    await node.ticked(busy, 5)
    first, idle = node.runtime.usage(busy), node.runtime.usage(paused)
    await node.ticked(busy, 60)
    after, still = node.runtime.usage(busy), node.runtime.usage(paused)
    assert first is not None and after is not None and idle is not None and still is not None
    assert after.cpu_seconds - first.cpu_seconds > 0.1
    assert still.cpu_seconds - idle.cpu_seconds < 0.1
    assert after.memory_bytes > idle.memory_bytes > 1 << 20
    await node.runtime.remove(busy)
    assert node.runtime.usage(busy) is None


async def test_starting_twice_is_starting_once(node: Node, guest: Path) -> None:
    wanted = order(guest)
    await asyncio.gather(node.runtime.start(wanted), node.runtime.start(wanted))
    first = node.pid(wanted.guest)
    await node.runtime.start(wanted)
    assert node.pid(wanted.guest) == first
    assert node.runtime.guests() == [wanted.guest]


async def test_a_guest_waits_paused_when_it_is_told_to(node: Node) -> None:
    guest = await node.start(spec={"startStrategy": "Paused"})
    assert node.status(guest).state == "Paused"
    assert await node.text(guest) == ""
    await node.runtime.resume(guest)
    await node.ticked(guest, 2)
    assert node.status(guest).state == "Running"


async def test_a_paused_guest_stands_still_and_goes_on_where_it_was(node: Node) -> None:
    guest = await node.start("rate=100")
    await node.ticked(guest, 3)
    await node.runtime.pause(guest)
    assert node.status(guest).state == "Paused"
    before = await node.text(guest)
    await asyncio.sleep(0.3)
    assert await node.text(guest) == before
    await node.runtime.resume(guest)
    assert node.status(guest).state == "Running"
    await node.ticked(guest, before.count("tick") + 3)
    assert_unbroken((await node.text(guest)).rpartition("tick")[0])


async def test_the_power_button_shuts_it_down(node: Node) -> None:
    guest = await node.start()
    await node.ticked(guest, 1)
    pid = node.pid(guest)
    await node.runtime.shut_down(guest)
    ended = await node.becomes(guest, "ShutDown")
    assert ended.reason == reasons.GUEST_SHUT_DOWN
    assert (await node.text(guest)).endswith("powerdown\n")
    await _gone(pid)


async def test_a_guest_that_switches_itself_off_has_shut_down(node: Node) -> None:
    guest = await node.start("rate=50 exit-after=3")
    await node.becomes(guest, "ShutDown")
    assert len(await node.ticks(guest)) == 3


async def test_a_panic_is_a_crash(node: Node) -> None:
    guest = await node.start("rate=50 panic-after=3")
    ended = await node.becomes(guest, "Crashed")
    assert (ended.reason, ended.message) == (reasons.GUEST_CRASHED, "the guest's kernel panicked")


async def test_a_killed_qemu_is_a_crash(node: Node) -> None:
    guest = await node.start()
    os.kill(node.pid(guest), signal.SIGKILL)
    ended = await node.becomes(guest, "Crashed")
    assert (ended.reason, ended.message) == (reasons.GUEST_CRASHED, "QEMU was killed by signal 9")


async def test_a_qemu_that_is_told_to_end_was_switched_off(node: Node) -> None:
    guest = await node.start()
    os.kill(node.pid(guest), signal.SIGTERM)
    ended = await node.becomes(guest, "Failed")
    assert ended.reason == reasons.SWITCHED_OFF


async def test_a_reboot_goes_on_in_place(node: Node) -> None:
    guest = await node.start("rate=50 reboot-after=3")
    await node.says(guest, r"boot \w+(?:.|\n)*boot \w+(?:.|\n)*boot \w+")
    assert node.status(guest).state == "Running"


async def test_nothing_is_left_of_a_removed_guest(node: Node) -> None:
    guest = await node.start()
    pid = node.pid(guest)
    await node.runtime.remove(guest)
    assert not is_running(pid)
    assert node.runtime.status(guest) is None
    assert list((node.folder / "guests").iterdir()) == []
    await node.runtime.remove(guest)


@pytest.mark.parametrize("way", ["by a program", "by ourselves"])
async def test_its_folder_is_its_owners_alone_and_its_process_not_roots(
    node: Node, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "by ourselves":
        monkeypatch.setattr(process, "can_become", lambda run_as: False)
    guest = await node.start()
    folder = node.folder / "guests" / guest
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    status = Path(f"/proc/{node.pid(guest)}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert "0" not in fields["Uid"].split()
    assert fields["Seccomp"] == "2"
    assert int(fields["CapEff"], 16) == 0
    limits = Path(f"/proc/{node.pid(guest)}/limits").read_text()
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert re.search(rf"Max open files +{process.MOST_FILES} ", limits)


async def test_a_qemu_that_cannot_start_says_why_and_leaves_nothing(node: Node) -> None:
    with pytest.raises(Refused, match=r"QEMU could not be started: .*CPUs"):
        await node.start(domain={"cpu": {"model": "qemu64", "sockets": 1024, "cores": 64}})
    assert node.runtime.guests() == []
    assert list((node.folder / "guests").iterdir()) == []


async def test_a_long_log_is_shortened_under_the_guest_and_its_readers(node: Node) -> None:
    guest = await node.start("rate=1000")
    path = node.folder / "guests" / guest / "console.log"
    following = asyncio.create_task(node.says(guest, "you said: still there"))
    await node.ticked(guest, 1000)
    before = path.stat().st_blocks
    trim(path, 2 * BLOCK)
    assert path.stat().st_blocks < before
    console = await node.runtime.console(guest)
    await console.write(b"still there\r")
    await following
    await console.close()
    ticks = [one.number for one in await node.ticks(guest)]
    assert ticks[0] > 100
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


async def _gone(pid: int) -> None:
    for _ in range(500):
        if not is_running(pid):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")
