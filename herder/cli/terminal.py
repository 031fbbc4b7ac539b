"""A terminal, or whatever stands in for one, joined with a console that comes over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import threading
import tty
from collections.abc import Generator
from contextlib import contextmanager

import aiohttp
import msgspec

PROTOCOL = "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR = range(4)
ESCAPE = b"\x1d"  # Ctrl-]


class _Status(msgspec.Struct):
    status: str = ""
    message: str = ""


@contextmanager
def terminal() -> Generator[int]:
    """Raw while it is used, so that the guest gets every key; as it was afterwards, whatever happens."""
    descriptor = sys.stdin.fileno()
    if not os.isatty(descriptor):
        yield descriptor
        return
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Talk:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, descriptor: int) -> None:
        self._socket = socket
        self._descriptor = descriptor
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()

    async def run(self) -> str:
        """Until the person leaves or the guest ends; what went wrong, if something did."""
        loop = asyncio.get_running_loop()
        # A thread that nobody waits for: a read cannot be called off, and not everything that can be read can be polled.
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        typing, showing = asyncio.create_task(self._type()), asyncio.create_task(self._show())
        try:
            await asyncio.wait([typing, showing], return_when=asyncio.FIRST_COMPLETED)
            return showing.result() if showing.done() else ""
        finally:
            for task in (typing, showing):
                task.cancel()
            await asyncio.gather(typing, showing, return_exceptions=True)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        while data := os.read(self._descriptor, 4096):
            with contextlib.suppress(RuntimeError):  # the loop has ended, and so will we
                loop.call_soon_threadsafe(self._typed.put_nowait, data)

    async def _type(self) -> None:
        while True:
            before, escape, _ = (await self._typed.get()).partition(ESCAPE)
            if before:
                await self._socket.send_bytes(bytes((STDIN,)) + before)
            if escape:
                return

    async def _show(self) -> str:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == ERROR:
                return _problem(data)
            if channel in (STDOUT, STDERR) and data:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        return "the connection was closed"


def _problem(data: bytes) -> str:
    """What the last message says; nothing where all went well."""
    try:
        status = msgspec.json.decode(data, type=_Status)
    except msgspec.MsgspecError:
        return data.decode(errors="replace").strip()
    return "" if status.status == "Success" else status.message or "no reason was given"
