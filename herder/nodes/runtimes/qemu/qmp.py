"""QMP, QEMU's control socket: lines of JSON, answers in order, events in between.

Our own and not `qemu.qmp`: that one keeps three tasks a connection, takes file descriptors only by detours, and reports a QEMU that
ended as an exception of its own background task. bench/qemu_starts.py measures both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

Document = dict[str, Any]
PATIENCE = 30.0


class QMPError(Exception):
    """QEMU refused a command; the text is its own."""


class Gone(QMPError):
    """Nobody is there any more to answer."""


class QMP:
    """One client of one socket: QEMU serves one at a time."""

    def __init__(self, connection: socket.socket, event: Callable[[str, Document], None], lost: Callable[[], None]) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._event = event
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[Any]] = []
        self._half = b""
        self._greeted: asyncio.Future[Document] = self._loop.create_future()
        self.closed = False
        self._loop.add_reader(connection, self._readable)

    async def greet(self, question: str = "") -> Any:
        """QEMU speaks first, as soon as it has made its machine. What it reads then may be there already: `question`, and what it
        answers to it, cost no further turns of both."""
        ready, answer = self._send("qmp_capabilities"), self._send(question) if question else None
        async with asyncio.timeout(PATIENCE):
            await self._greeted
            await ready
            return await answer if answer is not None else None

    async def do(self, command: str, *, descriptor: int | None = None, **arguments: Any) -> Any:
        """Names of arguments with `_` for `-`. A descriptor goes along to QEMU, which gets its own copy."""
        return await self._answer(command, self._send(command, descriptor, **arguments))

    def _send(self, command: str, descriptor: int | None = None, **arguments: Any) -> asyncio.Future[Any]:
        if self.closed:
            raise Gone("QEMU has ended")
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        line = msgspec.json.encode({"execute": command, "arguments": named})
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(answer)
        try:
            socket.send_fds(self._socket, [line], [descriptor] if descriptor is not None else [])
        except OSError:
            self._end()
        return answer

    async def _answer(self, command: str, answer: asyncio.Future[Any]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            raise QMPError(f"QEMU did not answer {command} in {PATIENCE:.0f} s") from None

    def close(self) -> None:
        """From our side: nobody is told."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._fail_all()

    def _readable(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            data = b""
        if not data:
            return self._end()
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._take(msgspec.json.decode(line))
        return None

    def _take(self, message: Document) -> None:
        if "event" in message:
            self._event(message["event"], message.get("data", {}))
        elif "QMP" in message:
            if not self._greeted.done():
                self._greeted.set_result(message)
        elif self._waiting:
            answer = self._waiting.pop(0)
            if answer.done():
                return
            if "error" in message:
                answer.set_exception(QMPError(message["error"].get("desc", "QEMU refused")))
            else:
                answer.set_result(message.get("return"))

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._lost()

    def _fail_all(self) -> None:
        waiting, self._waiting = [*self._waiting, self._greeted], []
        for one in waiting:
            if not one.done():
                one.set_exception(Gone("QEMU has ended"))
                one.exception()  # looked at: nobody may wait for it any more


def near(folder: int, name: str) -> str:
    """A name that fits a socket, however long its folder's is."""
    return f"/proc/self/fd/{folder}/{name}"


@contextlib.contextmanager
def opened_folder(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def listen(path: Path) -> socket.socket:
    """A socket that QEMU inherits: whoever connects before QEMU is there waits, and needs not try again."""
    with opened_folder(path.parent) as folder:
        listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        listener.bind(near(folder, path.name))
    os.chmod(path, 0o600)
    listener.listen(4)
    return listener


def connect(path: Path) -> socket.socket:
    """Raises OSError where nobody listens, or where those who came before fill all places: a QEMU that stands still takes nobody
    in, and whoever waited for it in the kernel would stand still with it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    try:
        with opened_folder(path.parent) as folder:
            connection.connect(near(folder, path.name))
    except OSError:
        connection.close()
        raise
    return connection
