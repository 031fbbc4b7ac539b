"""The guest's serial port: what it wrote, as far back as that is kept; and both ways, for as many as look at once.

QEMU writes to a file and reads from a pipe that is never closed. So nobody who reads too slowly, or leaves, can hold the guest up,
or leave a mark in what it wrote: with a socket a letter comes twice, or not at all, as soon as the other side has no room for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.record import CONSOLE_INPUT, CONSOLE_LOG
from herder.nodes.runtimes.qemu.trimming import read_kept
from herder.nodes.runtimes.qemu.watching import Growth

CHUNK = 1 << 16


class FileConsole:
    """From now on: what was written before is in the log."""

    def __init__(self, guest: Guest) -> None:
        """Raises OSError where nobody reads what is typed: the guest has ended, or has no console."""
        self._guest = guest
        self._keys = os.open(guest.folder / CONSOLE_INPUT, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._begin = os.stat(guest.folder / CONSOLE_LOG).st_size
        self._closed = asyncio.Event()

    def read(self) -> AsyncIterator[bytes]:
        return read_log(self._guest, True, self._begin, self._closed)

    async def write(self, data: bytes) -> None:
        """Waits while the guest reads nothing; what is typed to one that has ended is lost."""
        rest = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while rest and not self._closed.is_set():
                try:
                    rest = rest[os.write(self._keys, rest) :]
                except BlockingIOError:
                    await _room(self._keys)

    async def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            os.close(self._keys)


async def _room(descriptor: int) -> None:
    loop, room = asyncio.get_running_loop(), asyncio.Event()
    # Another one, so that several can wait, and none for what has been closed meanwhile.
    own = os.dup(descriptor)
    loop.add_writer(own, room.set)
    try:
        await room.wait()
    finally:
        loop.remove_writer(own)
        os.close(own)


async def read_log(guest: Guest, follow: bool, begin: int = 0, closed: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """The file is the agent's own, but what is in it is the guest's: it may be long."""
    path = guest.folder / CONSOLE_LOG
    growth = Growth(path) if follow and guest.process is not None else None
    ended = asyncio.create_task(guest.over.wait())
    closed = closed or asyncio.Event()
    left = asyncio.create_task(closed.wait())
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as file:
            file.seek(begin)
            while not closed.is_set():
                last = growth is None or guest.process is None
                while data := read_kept(file.fileno(), CHUNK):
                    yield data
                if growth is None or last:
                    return
                grown = asyncio.create_task(growth.wait())
                try:
                    await asyncio.wait([grown, ended, left], return_when=asyncio.FIRST_COMPLETED)
                finally:  # whoever reads may leave right here
                    grown.cancel()
                if ended.done() and guest.process is not None:
                    await guest.process.wait(5.0)
    finally:
        ended.cancel()
        left.cancel()
        if growth is not None:
            growth.close()
