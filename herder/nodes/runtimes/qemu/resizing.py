"""Larger disks of guests that run: their own QEMU makes them larger, and the guest sees it.

Which of a guest's disks it is follows from the file itself: QEMU was given open files, and tells which of its disks is on which.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from herder.nodes.runtimes.base import Busy
from herder.nodes.runtimes.qemu.command import DISK
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.process import PROC

Document = dict[str, Any]
FDSET = "/dev/fdset/"
# (device, inode)
File = tuple[int, int]


def file_of(path: Path) -> File:
    """Raises OSError where it is no file."""
    about = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(about.st_mode):
        raise OSError(f"{path.name} is no file")
    return about.st_dev, about.st_ino


def users_of(guests: Iterable[Guest], file: File) -> list[Guest]:
    """Those whose QEMU has it open. Those that have ended use nothing, though their QEMU may still be there to say how."""
    return [
        guest for guest in guests if not guest.ended and guest.process is not None and set(_open_files(guest.process.pid, file))
    ]


def _open_files(pid: int, file: File) -> Iterator[int]:
    """The descriptors of a process that lead to this file."""
    with contextlib.suppress(OSError):  # it ends just now
        for descriptor in os.scandir(PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                about = os.stat(descriptor.path)
                if (about.st_dev, about.st_ino) == file:
                    yield int(descriptor.name)


async def resize(guest: Guest, file: File, size: int) -> None:
    """A disk of a guest that runs. Raises `Busy` where it cannot be done now, and `QMPError` where QEMU cannot do it."""
    async with guest.leaving:
        if guest.state == "Incoming" or (guest.move is not None and guest.move.under_way):
            raise Busy("the guest is on its way to another node: its disk grows when it is there")
        if guest.process is None or guest.qmp is None:
            raise Busy("the guest's QEMU does not answer")
        sets = await guest.control.do("query-fdsets")
        descriptors = set(_open_files(guest.process.pid, file))
        names = {f"{FDSET}{one['fdset-id']}" for one in sets if descriptors & {each["fd"] for each in one["fds"]}}
        for node in await guest.control.do("query-named-block-nodes", flat=True):
            if _is_smaller_disk(node, names, size):
                await guest.control.do("block_resize", node_name=node["node-name"], size=size)


def _is_smaller_disk(node: Document, names: set[str], size: int) -> bool:
    """One that a guest may only read has to be opened again to become another size: when the guest is started next."""
    ours = str(node.get("node-name", "")).startswith(DISK) and node.get("file") in names
    return ours and not node.get("ro") and node["image"]["virtual-size"] < size
