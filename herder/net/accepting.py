"""Takes connections from a listening socket. asyncio's own servers write a thousand tracebacks a second once files run out."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any

import structlog

from herder.net.occasional import Occasional

log = structlog.get_logger()
BACKLOG = 1024
# In one turn of the loop: those who are connected already want theirs, too.
AT_ONCE = 64
PAUSE = 0.2
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
Came = Callable[[socket.socket, Any], None]


class Acceptor:
    def __init__(self, listener: socket.socket, came: Came, spare: Callable[[], None] = lambda: None) -> None:
        """`came` gets each connection and its address; `spare` closes one, where the system has no room for more."""
        self._listener = listener
        self._came = came
        self._spare = spare
        self._warn = Occasional(log)
        self._pausing: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._listener.setblocking(False)
        self._listener.listen(BACKLOG)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Nobody is let in any more; those who are in stay."""
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener)
        if self._pausing is not None:
            self._pausing.cancel()
        self._listener.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # gone before it was let in
            except OSError as error:
                self._no_room(error)
                return
            connection.setblocking(False)
            self._came(connection, address)

    def _no_room(self, error: OSError) -> None:
        """That passes; meanwhile they wait where the system keeps them."""
        self._warn("nobody can be let in for the moment", error=error.strerror or str(error))
        if error.errno in _NO_ROOM:
            self._spare()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        self._pausing = loop.call_later(PAUSE, lambda: loop.add_reader(self._listener, self._accept))
