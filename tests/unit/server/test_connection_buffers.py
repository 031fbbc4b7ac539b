"""A connection that is only opened costs little: the size of its buffer is set where asyncio has no public way to say it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tracemalloc
from pathlib import Path

import pytest

from herder.server.http import HttpServer, server_context
from tests.engines.certificates import Authority
from tests.unit.server.inside import engine_inside

CONNECTIONS = 20
A_CONNECTION = 128 * 1024


def connect(port: int, authority: Path) -> ssl.SSLSocket:
    """Over and done with its handshake; what the client itself keeps is not Python's memory."""
    context = ssl.create_default_context(cafile=str(authority))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")


@pytest.mark.slow
async def test_a_thousand_open_connections_would_take_less_than_128_mib(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving = authority.sign("serving")
    async with engine_inside(tmp_path) as inside:
        server = HttpServer(inside.router)
        listener = socket.create_server(("127.0.0.1", 0))
        await server.start(listener, server_context(serving.certificate, serving.key, authority.certificate), None)
        port = listener.getsockname()[1]
        open_ones = [await asyncio.to_thread(connect, port, authority.certificate)]
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            open_ones += [await asyncio.to_thread(connect, port, authority.certificate) for _ in range(CONNECTIONS)]
            assert tracemalloc.get_traced_memory()[0] - before < CONNECTIONS * A_CONNECTION
        finally:
            tracemalloc.stop()
            for one in open_ones:
                one.close()
            await server.stop()
