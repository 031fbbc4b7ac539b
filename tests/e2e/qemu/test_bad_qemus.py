"""QEMUs that end at once, do not answer, or stand still; disks that take nothing: said why in seconds, ended whatever they do."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from herder.api import reasons
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.record import Folder, ProcessRecord, Record
from tests.e2e.qemu.moves import LOAD, SLOW, copied, prepared
from tests.e2e.qemu.node import Node, order
from tests.engines.waiting import eventually

ENDS = """#!/bin/sh
echo "qemu-system-x86_64: warning: this is harmless" >&2
echo "qemu-system-x86_64: -drive file=a: Could not open 'a': Permission denied" >&2
exit 1
"""
SILENT = """#!/bin/sh
exec sleep 600
"""
# Says what QEMU says first, and then nothing more.
FALLS_SILENT = f"""#!{sys.executable}
import json, socket, sys, time
(number,) = [one.partition("fd=")[2].partition(",")[0] for one in sys.argv if one.startswith("socket,id=qmp")]
connection, _ = socket.socket(fileno=int(number)).accept()
reading = connection.makefile("rb")
connection.sendall(b'{{"QMP": {{}}}}\\n')
decoder, text = json.JSONDecoder(), ""
for answer in ({{}}, {{"status": "inmigrate"}}):
    while not text:
        text = connection.recv(65536).decode()
    _, end = decoder.raw_decode(text)
    text = text[end:].lstrip()
    connection.sendall(json.dumps({{"return": answer}}).encode() + b"\\n")
time.sleep(600)
"""


class Bad(Node):
    """A node whose QEMU is a program of the test's own."""

    def __init__(self, folder: Path, facts: Facts, guest: Path, script: str) -> None:
        folder.mkdir()
        program = folder / "qemu"
        program.write_text(script)
        program.chmod(0o755)
        super().__init__(folder, msgspec.structs.replace(facts, program=str(program)), None, guest)

    def processes(self) -> list[int]:
        """Those whose current folder is one of a guest's: that is how they are known."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "cwd").startswith(str(self.folder.resolve())):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


@pytest.fixture
async def bad(request: pytest.FixtureRequest, tmp_path: Path, facts: Facts, guest: Path) -> AsyncIterator[Bad]:
    one = Bad(tmp_path / "bad", facts, guest, request.param)
    await one.open()
    yield one
    await one.end()
    for pid in one.processes():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("incoming", [False, True])
@pytest.mark.parametrize("bad", [ENDS], indirect=True)
async def test_a_qemu_that_ends_at_once_is_refused_with_its_last_line(bad: Bad, node: Node, guest: Path, incoming: bool) -> None:
    started = node.status(await node.start()).started if incoming else None
    wanted = order(guest, incoming=started)
    with pytest.raises(Refused, match="Could not open 'a': Permission denied"):
        await (bad.runtime.prepare_incoming(wanted, "m") if incoming else bad.runtime.start(wanted))
    assert (bad.runtime.guests(), list((bad.folder / "guests").iterdir()), bad.processes()) == ([], [], [])


@pytest.mark.parametrize("bad", [SILENT], indirect=True)
async def test_a_qemu_that_never_says_a_word_is_ended_when_nobody_wants_it(bad: Bad, guest: Path) -> None:
    """Long before the patience with its first word is over."""
    wanted = order(guest)
    starting = asyncio.create_task(bad.runtime.start(wanted))

    async def has_begun() -> bool:
        return bool(bad.processes())

    await eventually(has_begun)
    async with asyncio.timeout(qmp.PATIENCE / 2):
        await bad.runtime.remove(wanted.guest)
        with pytest.raises(Refused):
            await starting
    assert (bad.runtime.guests(), bad.processes()) == ([], [])


@pytest.mark.parametrize("bad", [FALLS_SILENT], indirect=True)
async def test_a_target_whose_qemu_falls_silent_is_refused_and_can_be_removed(
    bad: Bad, node: Node, guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = order(guest, incoming=node.status(await node.start()).started)
    monkeypatch.setattr(qmp, "PATIENCE", 2.0)
    with pytest.raises(Refused, match="QEMU did not answer query-migrate in 2 s") as refused:
        await bad.runtime.prepare_incoming(wanted, "m")
    assert refused.value.reason == reasons.TARGET_POD_FAILED
    await bad.runtime.remove(wanted.guest)
    assert (bad.runtime.guests(), bad.processes()) == ([], [])


async def test_a_qemu_that_stands_still_is_not_waited_for_when_it_is_to_end(node: Node) -> None:
    guest = await node.start()
    await node.ticked(guest, 1)
    pid = node.pid(guest)
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(qmp.PATIENCE / 2):
        await node.runtime.shut_down(guest)
        await node.runtime.remove(guest)
    assert node.runtime.status(guest) is None
    assert not Path(f"/proc/{pid}").exists()


class Full:
    """A disk without room, for what is kept of guests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        write, write_process = Folder.write, Folder.write_process

        def record(folder: Folder, record: Record, *, durable: bool = True) -> None:
            self._check()
            write(folder, record, durable=durable)

        def process(folder: Folder, record: ProcessRecord) -> None:
            self._check()
            write_process(folder, record)

        monkeypatch.setattr(Folder, "write", record)
        monkeypatch.setattr(Folder, "write_process", process)

    def _check(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_guest_that_ends_while_the_disk_is_full_has_ended_and_that_is_kept_later(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Full(monkeypatch)
    guest = await node.start()
    await node.ticked(guest, 1)
    disk.full = True
    os.kill(node.pid(guest), signal.SIGKILL)
    assert (await node.becomes(guest, "Crashed")).reason == reasons.GUEST_CRASHED
    disk.full = False

    async def kept() -> bool:
        record = Folder(node.folder / "guests" / guest).record()
        return record is not None and record.outcome is not None and record.outcome.state == "Crashed"

    await eventually(kept)
    await node.reopen()
    assert node.status(guest).state == "Crashed"


async def test_a_start_that_cannot_be_written_down_leaves_no_process_behind(
    tmp_path: Path, facts: Facts, guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process had begun before the disk was full."""
    bad = Bad(tmp_path / "node", facts, guest, SILENT)
    await bad.open()

    def full(folder: Folder, record: ProcessRecord) -> None:
        assert bad.processes()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Folder, "write_process", full)
    with pytest.raises(Refused, match="No space left on device"):
        await bad.start()
    assert bad.processes() == []
    await bad.end()


@pytest.mark.usefixtures("migrations")
async def test_a_guest_does_not_leave_while_that_cannot_be_written_down(
    node: Node, other: Node, guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Full(monkeypatch)
    source = await node.start()
    _, address = await prepared(node, other, guest, source)
    disk.full = True
    with pytest.raises(Refused, match="No space left on device") as refused:
        await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    assert refused.value.reason == reasons.COPY_FAILED
    disk.full = False
    assert (node.status(source).state, node.runtime.moved(source)) == ("Running", None)


@pytest.mark.usefixtures("migrations")
async def test_a_guest_that_was_given_away_while_the_disk_is_full_is_given_away(
    node: Node, other: Node, guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Full(monkeypatch)
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    _, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, SLOW)
    await copied(node, source)
    disk.full = True
    await node.runtime.cancel(source)
    assert node.moved(source).state == "Cancelled"
    disk.full = False
    _, address = await prepared(node, other, guest, source, migration="migration-2")
    await node.runtime.migrate_out(source, "migration-2", address, PolicySettings(bandwidth_per_migration="0"))
    disk.full = True
    await node.becomes(source, "HandedOver")
    assert node.moved(source).state == "Completed"
    disk.full = False
