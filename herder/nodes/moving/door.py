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
from herder.nodes.moving.link import Answering
from herder.nodes.moving.papers import Lacking, node_in
from herder.nodes.moving.streams import PATIENCE, Server, Streams

log = structlog.get_logger()


class Door:
    def __init__(self, listener: socket.socket, tls: Callable[[], ssl.SSLContext]) -> None:
        """`tls` is asked for each one who comes: certificates are renewed while we listen."""
        self._listener = listener
        self._tls = tls
        self._inside = Server()
        self._accepting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, answering: Answering) -> None:
        self._listener.setblocking(False)
        self._accepting = tasks.keep_running(self._accept(answering), "the door for other agents")

    async def close(self) -> None:
        ours = (*self._tasks, *((self._accepting,) if self._accepting is not None else ()))
        for task in ours:
            task.cancel()
        await asyncio.gather(*ours, return_exceptions=True)
        self._listener.close()
        await self._inside.close()

    async def _accept(self, answering: Answering) -> None:
        while True:
            try:
                connection, peer = await asyncio.get_running_loop().sock_accept(self._listener)
            except OSError as error:
                # Too many open files, for example: that passes.
                log.warning("nobody can be let in", error=str(error))
                await asyncio.sleep(1)
                continue
            come = f"{peer[0]}:{peer[1]}"
            tasks.watched(self._let_in(connection, come, answering), "letting somebody in", kept_in=self._tasks, peer=come)

    async def _let_in(self, connection: socket.socket, peer: str, answering: Answering) -> None:
        try:
            streams = await _secured(connection, self._tls())
        except (OSError, TimeoutError, Lacking) as error:
            connection.close()
            return _tell(peer, error)
        shown = peer_of(streams)
        if node := node_in(shown):
            return self._inside.take(streams, answering, node)
        streams[1].close()
        who = shown.subject.rfc4514_string() if shown is not None else ""
        return log.warning("somebody who is no node was sent away", peer=peer, shown=who)


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


def _tell(peer: str, error: Exception) -> None:
    if isinstance(error, ssl.SSLCertVerificationError):
        log.warning("somebody without a certificate of this cluster was sent away", peer=peer, why=error.verify_message)
    elif isinstance(error, ssl.SSLError):
        why = (error.reason or str(error)).replace("_", " ").lower()
        log.warning("somebody without a certificate of this cluster was sent away", peer=peer, why=why)
    else:
        log.info("somebody came and was not let in", peer=peer, why=str(error) or type(error).__name__)
