"""The source of a guest gets in, whoever else comes."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
import structlog
from structlog.testing import capture_logs

from herder.net.occasional import Occasional
from herder.nodes.runtimes.qemu import admitting
from herder.nodes.runtimes.qemu.admitting import MOST_STRANGERS, first_with
from tests.attacks.connections import many, silent

TOKEN = "0f8a-the-word"
LONG = 3600.0


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def waiting(listener: socket.socket) -> asyncio.Task[socket.socket]:
    return asyncio.ensure_future(first_with(TOKEN, listener, Occasional(structlog.get_logger())))


async def source(address: tuple[str, int], said: str) -> socket.socket:
    connection = await silent(address)
    await asyncio.get_running_loop().sock_sendall(connection, said.encode())
    return connection


async def hung_up(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""


async def test_silent_strangers_delay_nobody(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is given up while the test runs: they are all still being asked when the source comes."""
    monkeypatch.setattr(admitting, "PATIENCE", LONG)
    task, address = waiting(listener), listener.getsockname()
    async with many(silent, address, 3) as strangers, asyncio.timeout(20):
        ours = await source(address, TOKEN)
        admitted = await task
        assert admitted.getpeername() == ours.getsockname()
        for stranger in strangers:
            await hung_up(stranger)
        ours.close()
        admitted.close()


async def test_what_follows_the_word_is_left_for_qemu(listener: socket.socket) -> None:
    task = waiting(listener)
    ours = await source(listener.getsockname(), f"{TOKEN}and the memory of a guest")
    async with asyncio.timeout(20):
        admitted = await task
        assert await asyncio.get_running_loop().sock_recv(admitted, 100) == b"and the memory of a guest"
    ours.close()
    admitted.close()


async def test_a_thousand_of_them_are_bounded_and_the_source_still_gets_in(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admitting, "PATIENCE", LONG)
    task, address = waiting(listener), listener.getsockname()
    async with many(silent, address, 2 * MOST_STRANGERS) as strangers, asyncio.timeout(20):
        await hung_up(strangers[0])
        ours = await source(address, TOKEN)
        admitted = await task
    ours.close()
    admitted.close()


async def test_wrong_words_are_refused_and_said_once_in_a_while(listener: socket.socket) -> None:
    address = listener.getsockname()
    with capture_logs() as said:
        task = waiting(listener)
        async with asyncio.timeout(20):
            for _ in range(50):
                stranger = await source(address, "x" * len(TOKEN))
                await hung_up(stranger)
                stranger.close()
            ours = await source(address, TOKEN)
            admitted = await task
    ours.close()
    admitted.close()
    assert [one["event"] for one in said] == ["somebody who was not sent by a node's agent was sent away"]


async def test_nobody_listens_once_the_source_is_in_or_nobody_waits_any_more(listener: socket.socket) -> None:
    address, task = listener.getsockname(), waiting(listener)
    async with many(silent, address, 3) as strangers, asyncio.timeout(20):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for stranger in strangers:
            await hung_up(stranger)
        with pytest.raises(ConnectionRefusedError):
            await silent(address)
