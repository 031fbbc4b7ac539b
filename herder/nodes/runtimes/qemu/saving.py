"""A guest's memory into a file, and out of it.

Saved, a guest is over where it ran: what it was goes on from the file, wherever that is read. Until the file is whole and on the
disk nothing is saved, and whatever keeps it from getting there lets the guest go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from herder.api import reasons
from herder.api.guest import SavedGuest
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Busy, Refused, Unfit
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.memory_file import HEAD, Head, MemoryFile, states_of
from herder.nodes.runtimes.qemu.progress import UNLIMITED, capabilities
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError
from herder.nodes.runtimes.qemu.record import SavingRecord

log = structlog.get_logger()
# A file does not answer.
EVENTS_ONLY = [{**one, "state": one["capability"] == "events"} for one in capabilities(PolicySettings())]
LOOK_EVERY = 0.02
CANCELLED_WITHIN = 10.0
SAVED = "its memory was saved"
# How QEMU names a stream that is over, or never began.
_OVER = ("none", "completed", "failed", "cancelled")
Told = Callable[[int, int], None]


async def save(guest: Guest, path: Path, version: str, told: Told) -> SavedGuest:
    """Safe to repeat, also by an agent that finds the guest standing still for it. Raises `Busy` and `Refused`."""
    async with guest.leaving:
        if guest.state == "Saved":
            return await asyncio.to_thread(lambda: MemoryFile(path).head().saved)
        _check(guest)
        before = guest.record.saving
        if before is None or before.path != str(path):
            guest.keep(saving=SavingRecord(path=str(path), ran=guest.state == "Running"))
        try:
            return await _save(guest, MemoryFile(path), version, told)
        except QMPError as error:
            await go_on(guest)
            why = await guest.why_it_ended() or str(error)
            raise Refused(reasons.SAVE_FAILED, f"its memory could not be saved: {why}") from None
        except BaseException:
            # Also where we are cancelled: nobody else would let it go on. Nothing is swallowed.
            await asyncio.shield(go_on(guest))
            raise


def _check(guest: Guest) -> None:
    if guest.state == "Incoming" or (guest.move is not None and guest.move.under_way):
        raise Busy("the guest is on its way from one node to another")
    if guest.waits_for_room:
        raise Busy("the guest stands still until its storage has room")
    if guest.ended or guest.state not in ("Running", "Paused"):
        raise Refused(reasons.SAVE_FAILED, "the guest does not run")
    if guest.record.not_migratable_because:
        raise Refused(reasons.CANNOT_SAVE_MEMORY, guest.record.not_migratable_because)


async def _save(guest: Guest, file: MemoryFile, version: str, told: Told) -> SavedGuest:
    assert guest.record.saving is not None, "written before"
    guest.shows_that_it_is_saved()
    await guest.control.do("stop")
    if (published := await _published(guest, file)) is not None:
        guest.end("Saved", reasons.SUSPENDED, SAVED)
        return published
    await _stream(guest.control, file, told)
    saved = SavedGuest(
        started=guest.record.started,
        version=version,
        bytes=await asyncio.to_thread(lambda: file.part.stat().st_size),
        paused=not guest.record.saving.ran,
    )
    owner = guest.record.definition.instance
    head = Head(
        guest=guest.folder.guest,
        instance=f"{owner.namespace}/{owner.name}",
        saved=saved,
        shape=guest.record.shape,
        files=guest.record.files,
        disks=await asyncio.to_thread(states_of, guest.record.disks),
    )
    await asyncio.to_thread(_sync, file.part)
    # Between these two nothing is awaited: what is saved is over here.
    file.publish(head)
    guest.end("Saved", reasons.SUSPENDED, SAVED)
    return saved


async def _published(guest: Guest, file: MemoryFile) -> SavedGuest | None:
    """What an earlier agent has saved to its end, and could not say so any more. QEMU has not run since."""
    if (await guest.control.do("query-migrate")).get("status") != "completed":
        return None
    try:
        head = await asyncio.to_thread(file.head)
    except Unfit:
        return None
    return head.saved if head.guest == guest.folder.guest else None


def _sync(path: Path) -> None:
    """Most of the file, in a thread: it takes as long as the disk does."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _stream(control: QMP, file: MemoryFile, told: Told) -> None:
    """By QEMU itself. One that an earlier agent began, and that is whole by now, is taken: QEMU writes it only once."""
    answer = await control.do("query-migrate")
    if answer.get("status") == "completed" and file.part.exists():
        return
    await _cancel(control)
    descriptor = await asyncio.to_thread(file.create)
    try:
        given = await control.do("add-fd", descriptor=descriptor)
    finally:
        os.close(descriptor)
    try:
        await control.do("migrate-set-capabilities", capabilities=EVENTS_ONLY)
        await control.do("migrate-set-parameters", max_bandwidth=UNLIMITED)
        await control.do("migrate", uri=f"file:/dev/fdset/{given['fdset-id']},offset={HEAD:#x}")
        await _until_written(control, told)
    finally:
        with contextlib.suppress(QMPError):
            await control.do("remove-fd", fdset_id=given["fdset-id"])


async def _until_written(control: QMP, told: Told) -> None:
    """It takes as long as the disk does. The guest stands still: each of its pages is written once."""
    while (answer := await control.do("query-migrate")).get("status") != "completed":
        if answer.get("status") in ("failed", "cancelled"):
            raise QMPError(answer.get("error-desc", "QEMU gave no reason"))
        ram: dict[str, Any] = answer.get("ram", {})
        if ram:
            told(int(ram["total"]) - int(ram["remaining"]), int(ram["total"]))
        await asyncio.sleep(LOOK_EVERY)


async def go_on(guest: Guest) -> None:
    """It is not saved after all. What was written of it is gone before it runs: it would be somebody that never was."""
    saving = guest.record.saving
    if saving is None or guest.ended:
        return
    try:
        await _cancel(guest.control)
        await asyncio.to_thread(MemoryFile(Path(saving.path)).discard)
        if saving.ran:
            await guest.control.do("cont")
    except (QMPError, OSError) as problem:
        log.warning("a guest that was not saved does not go on yet", guest=guest.folder.guest, problem=str(problem))
        return
    guest.settle(saving=None)
    guest.become("Running" if saving.ran else "Paused")


async def _cancel(control: QMP) -> None:
    if await _is_over(control):
        return
    await control.do("migrate_cancel")
    async with asyncio.timeout(CANCELLED_WITHIN):
        while True:
            if await _is_over(control):
                return
            await asyncio.sleep(LOOK_EVERY)


async def _is_over(control: QMP) -> bool:
    return (await control.do("query-migrate")).get("status", "none") in _OVER


async def load(guest: Guest) -> None:
    """Until all of it is there. Raises `Unfit`."""
    assert guest.record.reads is not None, "it was started with the file"
    descriptor = guest.record.reads.descriptor
    try:
        await guest.control.do("migrate-set-capabilities", capabilities=EVENTS_ONLY)
        await guest.control.do("migrate-incoming", uri=f"file:/dev/fdset/{descriptor},offset={HEAD:#x}")
    except QMPError as error:
        raise Unfit(f"QEMU cannot read the memory that was saved: {error}") from None
    await guest.received.wait()
    if not guest.has_memory:
        raise Unfit(f"the memory that was saved does not fit: {guest.message or guest.last_line()}")


async def let_go(guest: Guest) -> None:
    """It has read all of it: nobody needs the file any more. To give back the room of a large one takes a while: that is done here,
    and not by QEMU, where the guest would stand still meanwhile."""
    reads = guest.record.reads
    if reads is None or guest.ended or not guest.has_memory:
        return
    held: int | None = None
    # It runs, whatever becomes of the file.
    with contextlib.suppress(QMPError, OSError):
        held = await asyncio.to_thread(MemoryFile(Path(reads.path)).hold_used)
        await guest.control.do("remove-fd", fdset_id=reads.descriptor)
    guest.settle(durable=False, reads=None)
    if held is not None:
        guest.background(asyncio.to_thread(os.close, held))
