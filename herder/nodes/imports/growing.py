"""Makes the disk of a volume larger, and never smaller. Every step may be done again: whoever was killed on the way starts over.

A raw disk grows first and is told of afterwards: a guest that opens it in between finds it large, one that had it open before is
told. A qcow2 is changed by one alone: the QEMU of its guest, or `qemu-img` where no guest has it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from herder.api import reasons
from herder.api.imports import ImportDefinition
from herder.nodes.disk_space import DiskSpace, allocated
from herder.nodes.imports.converting import grow_qcow2
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.folder import StorageFolder
from herder.nodes.runtimes.base import Busy, Refused

SECTOR = 512
LOOK_AGAIN = 1.0
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_KEEP_SIZE = 1
# Between looking how long a disk is and making it longer: one that was given up may still be at it, and must not make it shorter.
_lengthening = threading.Lock()


class OpenDisks(Protocol):
    """The guests of this node, as far as their disks are concerned (`QemuRuntime`)."""

    def has_open(self, path: Path) -> bool: ...

    async def resize(self, path: Path, size: int) -> None: ...


async def grow(folder: StorageFolder, definition: ImportDefinition, guests: OpenDisks, waits: Callable[[str], None]) -> None:
    """`waits` is told what for, where the guest that has the disk cannot be told of it now. Raises ImportFailed."""
    volume, size = definition.volume, -(-definition.capacity // SECTOR) * SECTOR
    if lack := folder.space.never_fits(size) or folder.space.lack():
        raise ImportFailed(reasons.INSUFFICIENT_STORAGE, lack)
    if definition.unfilled:
        await asyncio.to_thread(folder.make_blank, volume, size)
    if not folder.is_filled(volume):
        raise ImportFailed(reasons.CONTENT_MISSING, f"volume {volume} has no content on this node yet, so there is nothing to grow")
    disk, record = folder.disk(volume), await asyncio.to_thread(folder.record_of, volume)
    if record.format == "raw":
        await _grow_raw(disk, size, folder.space, preallocated=record.preallocated)
    while True:
        try:
            if record.format == "qcow2" and not guests.has_open(disk):
                await _grow_unused_qcow2(disk, size)
            else:
                await guests.resize(disk, size)
            return
        except Busy as busy:
            waits(str(busy))
            await asyncio.sleep(LOOK_AGAIN)
        except Refused as refusal:
            raise ImportFailed(refusal.reason, str(refusal)) from None


async def _grow_raw(disk: Path, size: int, space: DiskSpace, *, preallocated: bool) -> None:
    more = max(0, size - allocated(disk)) if preallocated else 0
    if more and (lack := space.lack(more, file=disk)):
        raise ImportFailed(reasons.INSUFFICIENT_STORAGE, lack)
    with space.writing(disk, size if preallocated else 0):
        await asyncio.to_thread(lengthen, disk, size, preallocated=preallocated)


def lengthen(disk: Path, size: int, *, preallocated: bool = False) -> None:
    """A raw disk, durably; what is added are zeros. Where the room cannot be taken, it is as long as before. Raises OSError."""
    descriptor = os.open(disk, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        before = os.fstat(descriptor).st_size
        if before < size and preallocated:
            _take_room(descriptor, before, size)
        with _lengthening:
            if os.fstat(descriptor).st_size < size:
                os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_room(descriptor: int, before: int, size: int) -> None:
    """Beyond its end, which stays where it is: a guest that starts meanwhile must not see a part of it."""
    numbers = (ctypes.c_int(descriptor), ctypes.c_int(_KEEP_SIZE), ctypes.c_int64(before), ctypes.c_int64(size - before))
    if _LIBRARY.fallocate(*numbers):
        error = ctypes.get_errno()
        with _lengthening:
            # To the length that it has: this gives back what was taken beyond it.
            os.ftruncate(descriptor, os.fstat(descriptor).st_size)
        raise OSError(error, os.strerror(error))


async def _grow_unused_qcow2(disk: Path, size: int) -> None:
    if not await grow_qcow2(disk, size):
        why = "the disk is a qcow2, which only the QEMU of its guest and qemu-img can make larger"
        raise ImportFailed(reasons.UNSUPPORTED, f"{why}: start its machine, or install qemu-img on the node")
