"""After a crash of the agent: which guests still run, and what became of the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import structlog

from herder.api import reasons
from herder.nodes.runtimes.qemu import process, qmp
from herder.nodes.runtimes.qemu.command import disks_of
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.moving import Move
from herder.nodes.runtimes.qemu.process import Process
from herder.nodes.runtimes.qemu.qmp import QMPError
from herder.nodes.runtimes.qemu.record import GUEST, PROCESS, QMP_SOCKET, Folder, ProcessRecord
from herder.nodes.runtimes.qemu.unreadable import UnreadableGuest

log = structlog.get_logger()
# More than a node has pods: one that hangs takes nobody's turn.
AT_ONCE = 128
# Those that have not answered by then are named; most answer within milliseconds.
NAMED_AFTER = 3.0
MOST_NAMED = 20


async def adopt_all(path: Path, tell: Callable[[str], Callable[[], None]]) -> list[Guest]:
    folders = [Folder(one) for one in sorted(path.iterdir()) if one.is_dir()]
    unwritten = process.find_by_folder(folder.path for folder in folders if not _is_there(folder.process()))
    turns = asyncio.Semaphore(AT_ONCE)

    async def adopt(folder: Folder) -> Guest | None:
        async with turns:
            return await _adopt(folder, unwritten.get(folder.path), tell(folder.guest))

    adopting = {asyncio.create_task(adopt(folder)): folder.guest for folder in folders}
    if adopting:
        _, late = await asyncio.wait(adopting, timeout=NAMED_AFTER)
        _name(sorted(adopting[task] for task in late))
    return [guest for guest in await asyncio.gather(*adopting) if guest is not None]


def _name(late: list[str]) -> None:
    if late:
        more = {"more": len(late) - MOST_NAMED} if len(late) > MOST_NAMED else {}
        log.warning("guests have not answered yet, and are waited for", guests=", ".join(late[:MOST_NAMED]), **more)


async def _adopt(folder: Folder, by_folder: int | None, tell: Callable[[], None]) -> Guest | None:
    record, known = folder.record(), folder.process()
    pid = known.pid if known is not None and process.same(known) else by_folder
    started = pid is not None or os.path.lexists(folder / PROCESS)
    if record is None and (started or folder.why_unreadable()):
        # What it is must be known before it is started: it was, and is no more.
        lost = UnreadableGuest(folder, folder.why_unreadable() or f"{GUEST}, which says what this guest is, is gone", tell)
        await lost.give_up(_watched(pid) if pid is not None else None)
        return lost
    if record is None or (not started and record.outcome is None):
        # It had not been started when the agent ended: it is as if nobody had tried.
        folder.remove()
        return None
    guest = Guest(folder, record, tell)
    guest.move = Move(guest) if record.move is not None else None
    if pid is not None and (running := _watched(pid)) is not None:
        if described := process.describe(pid):
            _write_process(folder, described)
        await _take_over(guest, running)
    elif not guest.ended:
        rebooted = known is not None and known.boot_id != process.boot_id()
        why = "the machine was restarted" if rebooted else "QEMU ended while no agent was there"
        if guest.move is not None:
            guest.move.died(why)
        guest.end("Failed" if rebooted else "Crashed", reasons.GUEST_LOST if rebooted else reasons.GUEST_CRASHED, why)
    return guest


async def _take_over(guest: Guest, running: Process) -> None:
    guest.process = running
    try:
        await guest.talk(qmp.connect(guest.folder / QMP_SOCKET))
    except (OSError, QMPError, TimeoutError) as problem:
        why = str(problem) or f"nothing was heard for {qmp.PATIENCE:.0f} s"
        log.warning("a guest does not answer and is looked at again", guest=guest.folder.guest, problem=why)
        guest.become("Running", "QEMU does not answer")
        guest.lost()
    else:
        await _name_disks(guest)
    guest.watch(running)
    if not guest.ended or (guest.move is not None and guest.move.moved.state == "PostCopy"):
        await guest.find_out_about_moves()
    else:
        guest.background(guest.quit())


async def _name_disks(guest: Guest) -> None:
    """A guest of an agent that did not yet write down the formats of its disks: QEMU knows in which it has opened them."""
    if not guest.record.shape or "disks" in guest.record.shape:
        return
    with contextlib.suppress(QMPError):
        disks = disks_of(await guest.control.do("query-named-block-nodes", flat=True))
        if disks:
            guest.settle(shape={**guest.record.shape, "disks": disks}, durable=False)


def _is_there(known: ProcessRecord | None) -> bool:
    return known is not None and process.same(known)


def _write_process(folder: Folder, described: ProcessRecord) -> None:
    """Only a help for the next agent, which finds the process by its folder as well."""
    try:
        folder.write_process(described)
    except OSError as error:
        log.warning("it cannot be written down which process a guest is", guest=folder.guest, error=str(error))


def _watched(pid: int) -> Process | None:
    with contextlib.suppress(ProcessLookupError):
        return Process(pid, None)
    return None
