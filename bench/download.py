"""Large answers: read to the last byte from a bare TLS socket, because any HTTP client would take longer than a good server."""

import socket
import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.sides import Side
from tests.engines.processes import client_context

_BUFFER = 256 * 1024
_PATIENCE = 60


@dataclass(frozen=True)
class Answer:
    seconds: float
    size: int


class Downloader:
    """A connection of its own for each answer, opened before the clock runs; where the answer ends, the server closes it."""

    def __init__(self, side: Side) -> None:
        self._address = urlsplit(side.engine.server)
        self._context = client_context(side.engine)

    def get(self, path: str, accept: str) -> Answer:
        host, port = self._address.hostname or "", self._address.port or 443
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n".encode()
        plain = socket.create_connection((host, port), _PATIENCE)
        with self._context.wrap_socket(plain, server_hostname=host) as connection:
            began = time.perf_counter()
            connection.sendall(request)
            head, size = _drain(connection)
            seconds = time.perf_counter() - began
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"GET {path}: {head[:500]!r}")
        return Answer(seconds, size)


def _drain(connection: ssl.SSLSocket) -> tuple[bytes, int]:
    """The beginning of the answer, and how many bytes it had in all."""
    buffer = bytearray(_BUFFER)
    size = connection.recv_into(buffer)
    head = bytes(buffer[:size])
    while count := connection.recv_into(buffer):
        size += count
    return head, size
