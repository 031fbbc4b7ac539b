"""Guests whose disks find no room. QEMU stops one that meets the end of the disk, and tries its write again when it goes on.

Before it comes to that, whoever still takes room is stopped: what is left is the store's. Guests that use what they have go on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

import structlog

from herder.api import reasons
from herder.nodes.runtimes.qemu.guest import NO_ROOM, Guest
from herder.nodes.runtimes.qemu.process import PROC
from herder.nodes.runtimes.qemu.qmp import QMPError

log = structlog.get_logger()
# A guest that writes to its console a little is not the one that fills a disk.
GROWN = 1 << 20


class Room:
    def __init__(self) -> None:
        # What the files of each guest took when little was left first.
        self._taken: dict[str, int] = {}

    async def told(self, guests: Iterable[Guest], *, short: bool, back: bool) -> None:
        if not short:
            self._taken.clear()
        for guest in tuple(guests):
            if short and _may_be_held(guest):
                await self._hold_back(guest)
            elif back and guest.waits_for_room:
                await _go_on(guest)

    async def _hold_back(self, guest: Guest) -> None:
        assert guest.process is not None, "it runs"
        taken = taken_by(guest.process.pid)
        if taken - self._taken.setdefault(guest.folder.guest, taken) < GROWN:
            return
        log.warning("a guest takes room that is not there, and is paused", guest=guest.folder.guest)
        guest.settle(no_room=True)
        try:
            await guest.control.do("stop")
        except QMPError as problem:
            log.warning("a guest cannot be paused", guest=guest.folder.guest, problem=str(problem))
            return
        guest.become("Paused", NO_ROOM, reasons.INSUFFICIENT_STORAGE)


def _may_be_held(guest: Guest) -> bool:
    """Not one on its way to another node: it stands still by itself soon, and may be about to go on there."""
    leaves = guest.move is not None and guest.move.under_way
    return guest.state == "Running" and guest.process is not None and guest.qmp is not None and not leaves


async def _go_on(guest: Guest) -> None:
    log.warning("there is room again, and a guest goes on", guest=guest.folder.guest)
    try:
        await guest.control.do("cont")
    except QMPError as problem:
        log.warning("a guest does not go on", guest=guest.folder.guest, problem=str(problem))
        return
    guest.become("Running")
    if guest.record.no_room:
        guest.settle(no_room=False)


def taken_by(pid: int) -> int:
    """What the files that a process has open take of the disk, each once."""
    files: dict[tuple[int, int], int] = {}
    try:
        for descriptor in os.scandir(PROC / str(pid) / "fd"):
            about = os.stat(descriptor.path)
            if stat.S_ISREG(about.st_mode):
                files[about.st_dev, about.st_ino] = about.st_blocks * 512
    except OSError:
        return 0  # it ends just now
    return sum(files.values())
