"""The guest's serial port: what it wrote, as far back as that is kept; and both ways, for as many as look at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable

from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.record import CONSOLE_LOG, CONSOLE_SOCKET
from herder.nodes.runtimes.qemu.trimming import read_kept
from herder.nodes.runtimes.qemu.watching import Growth

CHUNK = 1 << 16
# A reader that does not keep up loses what is oldest; the log has it.
MOST_WAITING = 1024


class Hub:
    """QEMU speaks with one at a time: that one is this, and it passes on to everybody."""

    def __init__(self, connection: socket.socket, gone: Callable[[], None]) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self.readers: set[HubConsole] = set()
        self._loop.add_reader(connection, self._readable)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for reader in tuple(self.readers):
            reader.give(data)
        if not data:
            self.close()

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._loop.sock_sendall(self._socket, data)

    def leave(self, reader: HubConsole) -> None:
        self.readers.discard(reader)
        if not self.readers:
            self.close()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._gone()


class HubConsole:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        hub.readers.add(self)

    def give(self, data: bytes) -> None:
        if self._waiting.qsize() >= MOST_WAITING:
            self._waiting.get_nowait()
        self._waiting.put_nowait(data)

    async def read(self) -> AsyncIterator[bytes]:
        while data := await self._waiting.get():
            yield data

    async def write(self, data: bytes) -> None:
        await self._hub.write(data)

    async def close(self) -> None:
        self._hub.leave(self)
        self.give(b"")


class Consoles:
    """Of all guests of a node, connected only while somebody looks."""

    def __init__(self) -> None:
        self._hubs: dict[str, Hub] = {}

    def open(self, guest: Guest) -> HubConsole:
        name = guest.folder.guest
        hub = self._hubs.get(name)
        if hub is None:
            hub = self._hubs[name] = Hub(qmp.connect(guest.folder / CONSOLE_SOCKET), lambda: self._forget(name))
        return HubConsole(hub)

    def _forget(self, name: str) -> None:
        self._hubs.pop(name, None)

    def close(self) -> None:
        for hub in tuple(self._hubs.values()):
            hub.close()


async def read_log(guest: Guest, follow: bool) -> AsyncIterator[bytes]:
    """The file is the agent's own, but what is in it is the guest's: it may be long."""
    path = guest.folder / CONSOLE_LOG
    growth = Growth(path) if follow and guest.process is not None else None
    ended = asyncio.create_task(guest.over.wait())
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as file:
            while True:
                last = growth is None or guest.process is None
                while data := read_kept(file.fileno(), CHUNK):
                    yield data
                if growth is None or last:
                    return
                grown = asyncio.create_task(growth.wait())
                await asyncio.wait([grown, ended], return_when=asyncio.FIRST_COMPLETED)
                grown.cancel()
                if ended.done() and guest.process is not None:
                    await guest.process.wait(5.0)
    finally:
        ended.cancel()
        if growth is not None:
            growth.close()
