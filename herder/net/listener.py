"""A listening socket for servers of aiohttp, with a bound on how many are connected, and on how long they may say nothing."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from herder.net.accepting import Acceptor
from herder.net.crowd import Crowd, Limits, Visitor
from herder.net.occasional import Occasional

log = structlog.get_logger()
Factory = Callable[[], asyncio.Protocol]


class ArrivalPatience(msgspec.Struct, frozen=True):
    """In seconds, for those who have not said yet who they are."""

    handshake: float = 10.0
    # From connecting until the head of the first request is whole, the handshake included.
    first: float = 20.0


class Listener:
    def __init__(
        self,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        patience: ArrivalPatience | None = None,
        opened: Callable[[asyncio.Transport], None] = lambda _: None,
    ) -> None:
        """`opened` is told of each connection whose handshake is over, before anything is asked on it."""
        self._tls = tls
        self._patience = patience or ArrivalPatience()
        self._opened = opened
        self._acceptor: Acceptor | None = None
        self._visitors: dict[asyncio.BaseTransport, Visitor] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._warn = Occasional(log)
        self.crowd = Crowd(limits, lambda: asyncio.get_running_loop().time())

    def start(self, listener: socket.socket, factory: Factory) -> None:
        """`factory` makes the protocol of a connection, as servers of aiohttp do."""
        self._acceptor = Acceptor(listener, lambda connection, address: self._came(connection, address, factory), self.spare)
        self._acceptor.start()
        self._sweep()

    def close(self) -> None:
        """Those who are connected are their server's to end."""
        if self._acceptor is not None:
            self._acceptor.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for task in tuple(self._opening):
            task.cancel()

    @contextmanager
    def serving(self, transport: asyncio.BaseTransport | None) -> Generator[None]:
        """While a request of this connection is answered."""
        visitor = self._visitors.get(transport) if transport is not None else None
        if visitor is None:
            yield
            return
        self.crowd.begin(visitor)
        try:
            yield
        finally:
            self.crowd.end(visitor)

    @property
    def middleware(self) -> Middleware:
        """The same for all requests of an application."""

        @web.middleware
        async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
            with self.serving(request.transport):
                return await handler(request)

        return serve

    def recognise(self, transport: asyncio.BaseTransport | None, share: str, *, privileged: bool = False) -> str:
        """Whose connection it is, once that is known. Says why it cannot be had, which is empty where it can."""
        visitor = self._visitors.get(transport) if transport is not None else None
        if visitor is None or visitor.share is not None:
            return ""
        problem, leaves = self.crowd.recognise(visitor, share, privileged=privileged)
        self._let_go(leaves)
        return problem

    def _came(self, connection: socket.socket, address: Any, factory: Factory) -> None:
        # A unix socket's peer has none.
        place = str(address[0]) if isinstance(address, tuple) and address else ""
        visitor, leaves = self.crowd.arrive(place, connection.close)
        self._let_go(leaves)
        task = asyncio.get_running_loop().create_task(self._open(connection, visitor, factory))
        visitor.close = task.cancel
        self._opening.add(task)
        task.add_done_callback(lambda done: self._opened_or_not(done, connection, visitor))

    async def _open(self, connection: socket.socket, visitor: Visitor, factory: Factory) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: _Watched(self, visitor, factory()),
            connection,
            ssl=self._tls,
            ssl_handshake_timeout=self._patience.handshake if self._tls is not None else None,
        )

    def _opened_or_not(self, task: asyncio.Task[None], connection: socket.socket, visitor: Visitor) -> None:
        self._opening.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self.crowd.leave(visitor)
            connection.close()
        if error is not None and not isinstance(error, OSError | EOFError | TimeoutError):
            self._warn("a connection could not be opened", error=repr(error))

    def made(self, transport: asyncio.Transport, visitor: Visitor) -> None:
        visitor.close = transport.abort
        self._visitors[transport] = visitor
        self._opened(transport)

    def lost(self, transport: asyncio.Transport, visitor: Visitor) -> None:
        self._visitors.pop(transport, None)
        self.crowd.leave(visitor)

    def _let_go(self, visitor: Visitor | None) -> None:
        if visitor is not None:
            self._warn(
                "too many connections: one that said nothing for long is closed for one that comes",
                strangers=self.crowd.strangers,
                known=self.crowd.known,
                address=visitor.address,
            )
            visitor.close()

    def spare(self) -> None:
        """Closes one, where the process has no file left for somebody else."""
        self._let_go(self.crowd.someone_to_spare())

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        # First of all: whatever one of them does, the others are looked at again.
        self._sweeping = loop.call_later(self._patience.first / 4, self._sweep)
        for visitor in self.crowd.silent_since(loop.time() - self._patience.first):
            self.crowd.leave(visitor)
            visitor.close()


class _Watched(asyncio.Protocol):
    """Another protocol, of which the beginning and the end are noted."""

    def __init__(self, listener: Listener, visitor: Visitor, inner: asyncio.Protocol) -> None:
        self._listener = listener
        self._visitor = visitor
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        # Straight through: this is the way of every byte.
        self.data_received = inner.data_received
        self.eof_received = inner.eof_received
        self.pause_writing = inner.pause_writing
        self.resume_writing = inner.resume_writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._listener.made(transport, self._visitor)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._listener.lost(self._transport, self._visitor)
        self._inner.connection_lost(exc)
