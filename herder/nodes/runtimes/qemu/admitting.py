"""Lets in the one who was sent, among many who may come. All are asked at once: strangers delay nobody, however silent they are."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from typing import Any

from herder.kit import tasks
from herder.net.accepting import Acceptor
from herder.net.crowd import Crowd, limits_of
from herder.net.files import file_limit
from herder.net.occasional import Occasional

# For a stranger to say who it is.
PATIENCE = 5.0
# Who are asked at once, for one guest.
MOST_STRANGERS = 256


async def first_with(token: str, listener: socket.socket, sent_away: Occasional) -> socket.socket:
    """The first who says the token, or the very first where there is none to say. Nobody can come after that: the listener is
    closed, however this ends."""
    admission = _Admission(token, sent_away)
    acceptor = Acceptor(listener, admission.came)
    acceptor.start()
    try:
        return await admission.admitted
    finally:
        acceptor.close()
        admission.end()


class _Admission:
    def __init__(self, token: str, sent_away: Occasional) -> None:
        self._token = token.encode()
        self._sent_away = sent_away
        loop = asyncio.get_running_loop()
        room = min(MOST_STRANGERS, max(2, file_limit() // 8))
        self._crowd = Crowd(limits_of(room, strangers=room), loop.time)
        self._asking: set[asyncio.Task[None]] = set()
        self.admitted: asyncio.Future[socket.socket] = loop.create_future()

    def came(self, connection: socket.socket, address: Any) -> None:
        place = str(address[0]) if isinstance(address, tuple) and address else ""
        visitor, leaves = self._crowd.arrive(place, connection.close)
        if leaves is not None:
            leaves.close()
        task = tasks.watched(self._ask(connection, place), "asking who comes", kept_in=self._asking, peer=place)
        visitor.close = task.cancel

        def done(_: asyncio.Task[None]) -> None:
            self._crowd.leave(visitor)
            if not self._is_admitted(connection):
                connection.close()

        task.add_done_callback(done)

    def end(self) -> None:
        for task in tuple(self._asking):
            task.cancel()

    async def _ask(self, connection: socket.socket, place: str) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                said = await _read(connection, len(self._token))
            if hmac.compare_digest(said, self._token):
                if not self.admitted.done():
                    self.admitted.set_result(connection)
                return
        self._sent_away("somebody who was not sent by a node's agent was sent away", peer=place)

    def _is_admitted(self, connection: socket.socket) -> bool:
        done = self.admitted.done() and not self.admitted.cancelled()
        return done and self.admitted.result() is connection


async def _read(connection: socket.socket, size: int) -> bytes:
    """Not a byte more: what follows is for QEMU."""
    heard = b""
    while len(heard) < size and (part := await asyncio.get_running_loop().sock_recv(connection, size - len(heard))):
        heard += part
    return heard
