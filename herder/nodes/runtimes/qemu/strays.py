"""Guests whose agent is gone and does not come back: shut down, or else switched off, and written down as that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.nodes.runtimes.qemu import process
from herder.nodes.runtimes.qemu.adopting import adopt_all
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.qmp import QMPError
from herder.nodes.runtimes.qemu.record import Folder, Outcome

PATIENCE = 10.0
# For guests to shut down before they are switched off.
SHUT_DOWN_PATIENCE = 4.0


async def end_strays(guests: Iterable[Path]) -> int:
    """How many there were. Only while nobody else keeps these folders."""
    found = running(guests)
    await asyncio.gather(*(_shut_down(folder) for folder in sorted({path.parent for path in found})))
    for path, pid in running(found).items():
        _switch_off(Folder(path), pid)
    return len(found)


def running(guests: Iterable[Path]) -> dict[Path, int]:
    """The folders of guests whose QEMU is there, and its process."""
    known = {folder.path: folder.process() for folder in map(Folder, guests)}
    nameless = process.find_by_folder(path for path, one in known.items() if one is None)
    alive = {path: one.pid for path, one in known.items() if one is not None and process.same(one)}
    return nameless | alive


def run_on(guests: int) -> str:
    """For people who asked for it."""
    counted, them = (f"{guests} guests run", "them") if guests > 1 else ("1 guest runs", "it")
    return f"{counted} on; the next `herder up` finds {them} again"


async def _shut_down(folder: Path) -> None:
    """By their power buttons, as their agent would have done."""
    guests = [guest for guest in await adopt_all(folder, lambda _: lambda: None) if not guest.ended]
    # Side by side: those that hang have used up their time together.
    await asyncio.gather(*map(_press, guests))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SHUT_DOWN_PATIENCE):
            for guest in guests:
                await guest.over.wait()
    for guest in guests:
        if not guest.ended:
            guest.leave()
    await asyncio.gather(*(guest.quit() for guest in guests if guest.ended))


async def _press(guest: Guest) -> None:
    with contextlib.suppress(QMPError, TimeoutError):
        async with asyncio.timeout(SHUT_DOWN_PATIENCE):
            await guest.control.do("system_powerdown")


def _switch_off(folder: Folder, pid: int) -> None:
    record = folder.record()
    if record is not None and record.outcome is None:
        switched_off = Outcome("Failed", reasons.SWITCHED_OFF, "it ran on without an agent, and was switched off")
        folder.write(msgspec.structs.replace(record, outcome=switched_off))
    with contextlib.suppress(ProcessLookupError):
        _kill(pid)


def _kill(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], PATIENCE)
    finally:
        os.close(descriptor)
