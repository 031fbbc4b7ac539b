"""The transport to the engine's own unix sockets, which most writes of our processes go through.

Writes are sent and their answers read by hand: on both ends of the socket is a program of ours, which names the length of what it
sends. That takes a third, or two fifths, of what a client takes that is ready for any server (bench/calls.py). Reads and watches go
the same way as over TCP.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from herder.kube.credentials import Anonymous
from herder.kube.http import CONNECT_PATIENCE, HttpTransport, session_over_socket, unreachable
from herder.kube.transport import Call, Reply

_HEAD_END = b"\r\n\r\n"
_LONGEST_HEAD = 64 * 1024
# Well before the server hangs up on one that says nothing: what is sent just then would be lost.
IDLE = 30.0
# Nothing that ends a line, or a word of the first one.
_TARGET = re.compile(r"[!-~]+")


class Broken(Exception):
    """There is no whole answer; the text says why."""


class Head(msgspec.Struct):
    """What an answer says before its body."""

    status: int
    length: int = -1
    warnings: tuple[str, ...] = ()
    is_last: bool = False


class SocketTransport(HttpTransport):
    def __init__(self, socket: Path, agent: str) -> None:
        super().__init__(session_over_socket(socket, agent), "http://herder", Anonymous())
        self._path = str(socket)
        self._begin = f" HTTP/1.1\r\nHost: herder\r\nUser-Agent: {agent}/1\r\nAccept: "
        self._idle: list[Connection] = []
        self._connections: set[Connection] = set()

    async def send(self, call: Call) -> Reply:
        if call.method == "GET":
            return await super().send(call)
        request = self._written(call)
        try:
            async with asyncio.timeout(call.patience):
                connection = self._free() or await self._connect()
                head, body = await self._ask(connection, request)
        except (Broken, OSError, TimeoutError) as error:
            raise unreachable(call, error) from error
        return Reply(head.status, body, head.warnings)

    async def close(self) -> None:
        for connection in tuple(self._connections):
            connection.close()
        await super().close()

    async def _ask(self, connection: Connection, request: bytes) -> tuple[Head, bytes]:
        try:
            head, body = await connection.ask(request)
        except BaseException:
            # What is still to come would be taken for the answer to the next one.
            connection.close()
            raise
        if head.is_last:
            connection.close()
        elif not connection.closed:
            connection.free_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return head, body

    def _free(self) -> Connection | None:
        """The one that was used last, unless that is too long ago. All others were used before it."""
        if not self._idle:
            return None
        if asyncio.get_running_loop().time() - self._idle[-1].free_since < IDLE:
            return self._idle.pop()
        for connection in tuple(self._idle):
            connection.close()
        return None

    async def _connect(self) -> Connection:
        async with asyncio.timeout(CONNECT_PATIENCE):
            _, connection = await asyncio.get_running_loop().create_unix_connection(lambda: Connection(self._forget), self._path)
        self._connections.add(connection)
        return connection

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _written(self, call: Call) -> bytes:
        target = f"{call.path}?{urlencode(call.query)}" if call.query else call.path
        if _TARGET.fullmatch(target) is None:
            raise ValueError(f"{call.path!r} is no path of a request")
        body = f"\r\nContent-Type: {call.content_type}\r\nContent-Length: {len(call.body)}" if call.body else ""
        return f"{call.method} {target}{self._begin}{call.accept}{body}\r\n\r\n".encode() + call.body


class Connection(asyncio.Protocol):
    """One that is kept. It is asked one thing at a time."""

    def __init__(self, forget: Callable[[Connection], None]) -> None:
        self._forget = forget
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[Head, bytes]] | None = None
        self._head: Head | None = None
        self._came = bytearray()
        self.closed = False
        self.free_since = 0.0

    async def ask(self, request: bytes) -> tuple[Head, bytes]:
        if self._transport is None or self.closed:
            raise Broken("the server has closed the connection")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._over("we have closed the connection")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._over("the server has closed the connection")

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # nobody asked
            return
        self._came += data
        try:
            self._read(self._answer)
        except Broken as error:
            self._answer.set_exception(error)

    def _read(self, answer: asyncio.Future[tuple[Head, bytes]]) -> None:
        head = self._head or self._read_head()
        if head is None or len(self._came) < head.length:
            self._head = head
            return
        if len(self._came) > head.length:
            raise Broken("the answer is longer than it says")
        body, self._came, self._head = bytes(self._came), bytearray(), None
        answer.set_result((head, body))

    def _read_head(self) -> Head | None:
        end = self._came.find(_HEAD_END)
        if end < 0:
            if len(self._came) > _LONGEST_HEAD:
                raise Broken("the head of the answer does not end")
            return None
        head = read_head(bytes(self._came[:end]))
        del self._came[: end + len(_HEAD_END)]
        return head

    def _over(self, why: str) -> None:
        if not self.closed:
            self.closed = True
            self._forget(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Broken(why))


def read_head(raw: bytes) -> Head:
    first, *lines = raw.decode(errors="surrogateescape").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit() or int(rest[:3]) < 200:
        raise Broken(f"the answer begins with {first[:80]!r}, which begins no answer of HTTP/1.1")
    head = Head(int(rest[:3]), is_last=version != "HTTP/1.1")
    for line in lines:
        name, _, value = line.partition(":")
        _read_header(head, name.lower(), value.strip())
    if head.length < 0:
        raise Broken("the answer does not name its length")
    return head


def _read_header(head: Head, name: str, value: str) -> None:
    if name == "content-length" and value.isdigit():
        head.length = int(value)
    elif name == "warning":
        head.warnings = (*head.warnings, value)
    elif name == "connection":
        head.is_last = value.lower() == "close"
