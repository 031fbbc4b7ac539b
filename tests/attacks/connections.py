"""Attacks on connections: each opens many, says as little as it can on them, and keeps them until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

Address = tuple[str, int]
Attack = Callable[[Address], Awaitable[socket.socket]]


async def silent(address: Address) -> socket.socket:
    """Not a byte."""
    connection = socket.socket()
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, address)
    return connection


async def half_a_handshake(address: Address) -> socket.socket:
    """The beginning of a greeting whose end never comes."""
    connection = await silent(address)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    await asyncio.get_running_loop().sock_sendall(connection, outgoing.read()[:60])
    return connection


async def noise(address: Address) -> socket.socket:
    connection = await silent(address)
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(connection, b"\x16\x03\x01\x00\x05\x01")
    return connection


ATTACKS: dict[str, Attack] = {"silent": silent, "half a handshake": half_a_handshake, "noise": noise}


@asynccontextmanager
async def many(attack: Attack, address: Address, count: int) -> AsyncGenerator[list[socket.socket]]:
    """So many connections, opened a hundred at a time; those that the other side ended are still in the list."""
    connections: list[socket.socket] = []
    try:
        while len(connections) < count:
            some = (attack(address) for _ in range(min(100, count - len(connections))))
            connections += await asyncio.gather(*some)
        yield connections
    finally:
        for connection in connections:
            connection.close()
