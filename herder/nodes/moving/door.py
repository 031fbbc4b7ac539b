"""Where other nodes' agents come in. Who does not show what a node shows is sent away, and it is said who that was."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

import structlog
from cryptography import x509

from herder.kit import tasks
from herder.net.accepting import Acceptor
from herder.net.crowd import Crowd, Limits, Visitor
from herder.net.files import file_limit
from herder.net.occasional import Occasional
from herder.nodes.moving.link import Answering
from herder.nodes.moving.papers import Lacking, node_in
from herder.nodes.moving.streams import PATIENCE, Server, Streams

log = structlog.get_logger()


# Who are asked at once who they are, and connections of nodes. A node needs one for what it sends; more are there for a while
# when it starts anew.
MOST_STRANGERS, MOST_NODES, OF_ONE_NODE = 256, 1000, 16


class Door:
    def __init__(self, listener: socket.socket, tls: Callable[[], ssl.SSLContext], limits: Limits | None = None) -> None:
        """`tls` is asked for each one who comes: certificates are renewed while we listen."""
        self._listener = listener
        self._tls = tls
        self._limits = limits or _limits(file_limit())
        self._inside = Server()
        self._tasks: set[asyncio.Task[None]] = set()
        self._acceptor: Acceptor | None = None
        self._crowd: Crowd | None = None
        # One for each kind: what is frequent must not drown what is rare.
        self._no_certificate, self._no_node, self._too_many = (Occasional(log) for _ in range(3))
        self._not_let_in = Occasional(log, "info")

    def open(self, answering: Answering) -> None:
        crowd = self._crowd = Crowd(self._limits, asyncio.get_running_loop().time)
        self._acceptor = Acceptor(self._listener, lambda connection, peer: self._came(crowd, connection, peer, answering))
        self._acceptor.start()

    @property
    def nodes(self) -> int:
        """Connections of those who were let in."""
        return self._crowd.known if self._crowd is not None else 0

    async def close(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listener.close()
        await self._inside.close()

    def _came(self, crowd: Crowd, connection: socket.socket, peer: Any, answering: Answering) -> None:
        visitor, leaves = crowd.arrive(str(peer[0]), connection.close)
        if leaves is not None:
            leaves.close()
        come = f"{peer[0]}:{peer[1]}"
        letting_in = self._let_in(crowd, visitor, connection, come, answering)
        task = tasks.watched(letting_in, "letting somebody in", kept_in=self._tasks, peer=come)
        visitor.close = task.cancel

        def done(_: asyncio.Task[None]) -> None:
            if task.cancelled():
                connection.close()
            if visitor.share is None:
                crowd.leave(visitor)

        task.add_done_callback(done)

    async def _let_in(self, crowd: Crowd, visitor: Visitor, connection: socket.socket, peer: str, answering: Answering) -> None:
        try:
            streams = await _secured(connection, self._tls())
        except (OSError, TimeoutError, Lacking) as error:
            connection.close()
            return self._tell(peer, error)
        shown = peer_of(streams)
        if not (node := node_in(shown)):
            streams[1].close()
            who = shown.subject.rfc4514_string() if shown is not None else ""
            return self._no_node("somebody who is no node was sent away", peer=peer, shown=who)
        problem, leaves = crowd.recognise(visitor, node)
        if leaves is not None:
            leaves.close()
        if problem:
            streams[1].close()
            return self._too_many("a node was sent away", peer=peer, node=node, why=problem)
        visitor.close = streams[1].transport.abort
        return self._inside.take(streams, answering, node).add_done_callback(lambda _: crowd.leave(visitor))

    def _tell(self, peer: str, error: Exception) -> None:
        if isinstance(error, ssl.SSLCertVerificationError):
            self._no_certificate(
                "somebody without a certificate of this cluster was sent away", peer=peer, why=error.verify_message
            )
        elif isinstance(error, ssl.SSLError):
            why = (error.reason or str(error)).replace("_", " ").lower()
            self._no_certificate("somebody without a certificate of this cluster was sent away", peer=peer, why=why)
        else:
            self._not_let_in("somebody came and was not let in", peer=peer, why=str(error) or type(error).__name__)


def peer_of(streams: Streams) -> x509.Certificate | None:
    tls: Any = streams[1].get_extra_info("ssl_object")
    shown = tls.getpeercert(binary_form=True) if tls is not None else None
    return x509.load_der_x509_certificate(shown) if shown else None


async def _secured(connection: socket.socket, tls: ssl.SSLContext) -> Streams:
    """asyncio's own servers keep to themselves why a handshake failed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=tls, ssl_handshake_timeout=PATIENCE)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _limits(files: int) -> Limits:
    strangers, nodes = min(MOST_STRANGERS, files // 8), min(MOST_NODES, files // 4)
    return Limits(max(2, strangers), max(2, strangers * 3 // 4), max(2, nodes), OF_ONE_NODE, 0)
