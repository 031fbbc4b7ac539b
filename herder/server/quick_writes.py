"""Writes that come over a unix socket, read and answered by hand.

Our own processes send nearly all of what changes in a cluster, and they send it in one plain form (herder/kube/unix.py). What comes
in that form and all at once is answered here, which saves a fifth of what a small write costs the engine (bench/calls.py). Whatever
else comes, be it only a header that we do not know by heart, or a body that is not whole, makes the connection one of the other
server: for good, and without a byte lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
import structlog
from multidict import CIMultiDict

from herder.server.request import BODY_LIMIT, Request, Response, User, parse_query

log = structlog.get_logger()
METHODS = ("POST", "PATCH", "PUT", "DELETE")
# All that our processes say. Others could change how the request has to be read, or who it is from.
HEADERS = frozenset(("host", "user-agent", "accept", "content-type", "content-length"))
_HEAD_END = b"\r\n\r\n"
# Nothing that somebody could read as another path than we do.
_TARGET = re.compile(r"/apis?/(?!.*/\.)[!\"$-~]+")
_VALUE = re.compile(r"[ -~]*")
_LENGTH = re.compile(r"[0-9]{1,7}")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
Handle = Callable[[Request], Awaitable[Response]]


class Unusual(Exception):
    """Not for us."""


class Head(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: CIMultiDict[str]
    # Of the head itself, and of what follows it.
    size: int
    length: int


class QuickWrites:
    """What the connections of a server have in common."""

    def __init__(self, handle: Handle, others: Callable[[], asyncio.Protocol], patience: float) -> None:
        self.handle = handle
        # Seconds for which a connection may be silent.
        self.patience = patience
        # Makes a connection of the other server.
        self.others = others
        self.connections: set[Connection] = set()

    async def finish(self, patience: float) -> None:
        """Takes no more, and ends when all have their answers, or it takes too long."""
        for one in tuple(self.connections):
            one.leave()
        if waiting := [one.answering for one in self.connections if one.answering is not None]:
            await asyncio.wait(waiting, timeout=patience)
        for one in tuple(self.connections):
            one.abort()


class Connection(asyncio.Protocol):
    def __init__(self, server: QuickWrites, user: User) -> None:
        self._server = server
        self._user = user
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._came = b""
        self._leaving = False
        self._heard = self._loop.time()
        self._watchman: asyncio.TimerHandle | None = None
        self.answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self.answering is not None:
            # Nobody is there to be told. What is on its way to the disk is not taken back.
            self.answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        if self.answering is not None:
            # It does not wait for its answers: kept, as long as it stays within reason.
            self._came += data
            if len(self._came) > BODY_LIMIT:
                self.abort()
        else:
            self._take(data)

    def leave(self) -> None:
        self._leaving = True
        if self.answering is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self, data: bytes) -> None:
        try:
            head = read_head(data)
            body, self._came = data[head.size : head.size + head.length], data[head.size + head.length :]
            if len(body) < head.length:
                raise Unusual
        except Unusual:
            self._give_away(data)
        else:
            self.answering = self._loop.create_task(self._answer(head, body))

    def _give_away(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self._end()
        other = self._server.others()
        transport.set_protocol(other)
        other.connection_made(transport)
        other.data_received(data)

    def _watch(self) -> None:
        """Not once for each request: it looks when time may be up."""
        silent = 0.0 if self.answering is not None else self._loop.time() - self._heard
        if silent >= self._server.patience:
            self.leave()
        else:
            self._watchman = self._loop.call_later(self._server.patience - silent, self._watch)

    def _end(self) -> None:
        self._server.connections.discard(self)
        if self._watchman is not None:
            self._watchman.cancel()

    async def _answer(self, head: Head, body: bytes) -> None:
        """Whatever goes wrong ends the connection, and whoever waits for the answer learns that there is none."""
        try:
            await self._try_to_answer(head, body)
        except Exception:
            log.exception("a request could not be answered", method=head.method, path=head.target)
            self.answering = None
            self.abort()

    async def _try_to_answer(self, head: Head, body: bytes) -> None:
        path, _, query = head.target.partition("?")
        request = Request(
            method=head.method,
            path=path,
            query=parse_query(query),
            headers=head.headers,
            body=body,
            user=self._user,
            internal=True,
        )
        response = await self._server.handle(request)
        self.answering = None
        if self._transport is None or self._transport.is_closing():
            return
        self._heard = self._loop.time()
        self._transport.write(written(response))
        if self._leaving:
            self._transport.close()
        elif self._came:
            self._take(self._came)


def read_head(data: bytes) -> Head:
    """Raises Unusual where it is not whole, or none of ours."""
    end = data.find(_HEAD_END)
    if end < 0:
        raise Unusual
    first, *lines = data[:end].decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    if method not in METHODS or version != "HTTP/1.1" or _TARGET.fullmatch(target) is None:
        raise Unusual
    headers = CIMultiDict[str]()
    for line in lines:
        name, _, value = line.partition(": ")
        if name.lower() not in HEADERS or name in headers or _VALUE.fullmatch(value) is None:
            raise Unusual
        headers[name] = value
    length = headers.get("Content-Length", "0")
    if _LENGTH.fullmatch(length) is None or int(length) > BODY_LIMIT:
        raise Unusual
    return Head(method, target, headers, end + len(_HEAD_END), int(length))


def written(response: Response) -> bytes:
    """All of it at once, with the same headers as from the other server."""
    named = {
        "Content-Type": response.content_type,
        "Cache-Control": "no-cache, private",
        "Server": "herder",
        **response.headers,
        "Content-Length": str(len(response.body)),
    }
    lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}"]
    lines += [f"{name}: {value}" for name, value in named.items()]
    lines += [f"Warning: {warning}" for warning in response.warnings]
    # A text of somebody else's, such as a name in a warning, must not begin a line of its own.
    head = "\r\n".join(line.replace("\r", " ").replace("\n", " ") for line in lines)
    return head.encode() + _HEAD_END + response.body
