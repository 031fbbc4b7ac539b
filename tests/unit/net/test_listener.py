"""Connections to a real server that has few places."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from herder.net.accepting import Acceptor
from herder.net.crowd import Limits
from herder.net.listener import ArrivalPatience, Listener
from tests.engines.waiting import eventually

FEW = Limits(strangers=4, per_address=4, known=6, per_share=3, reserved=1)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Door:
    def __init__(self, listener: Listener, port: int) -> None:
        self.listener, self._port = listener, port
        self.open: list[Streams] = []

    async def comes(self) -> Streams:
        streams = await asyncio.open_connection("127.0.0.1", self._port)
        self.open.append(streams)
        return streams

    async def answered(self, streams: Streams) -> bytes:
        streams[1].write(GET)
        async with asyncio.timeout(10):
            return await streams[0].readuntil(b"ok")


@asynccontextmanager
async def door(limits: Limits = FEW, patience: ArrivalPatience | None = None) -> AsyncGenerator[Door]:
    listener = Listener(limits, None, patience)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        with listener.serving(request.transport):
            return web.Response(text="ok")

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    bound = socket.create_server(("127.0.0.1", 0))
    assert runner.server is not None
    listener.start(bound, runner.server)
    opened = Door(listener, bound.getsockname()[1])
    try:
        yield opened
    finally:
        listener.close()
        for _, writer in opened.open:
            writer.close()
        await runner.cleanup()


async def ended(streams: Streams) -> None:
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            assert await streams[0].read() == b""


async def test_who_comes_gets_in_however_many_are_silent() -> None:
    async with door() as open_door:
        first = await open_door.comes()
        for _ in range(200):
            await open_door.comes()
        assert b"200 OK" in await open_door.answered(await open_door.comes())
        await ended(first)
        assert open_door.listener.crowd.strangers <= FEW.strangers


async def test_who_asks_for_nothing_is_let_go_and_who_asked_is_not() -> None:
    async with door(patience=ArrivalPatience(first=0.2)) as open_door:
        silent, asks = await open_door.comes(), await open_door.comes()
        await open_door.answered(asks)
        await ended(silent)
        await ended(await open_door.comes())
        assert b"200 OK" in await open_door.answered(asks)


async def test_one_that_has_left_has_left_its_place() -> None:
    async with door() as open_door:
        for _ in range(3):
            streams = await open_door.comes()
            await open_door.answered(streams)
            streams[1].close()

        async def empty() -> bool:
            return open_door.listener.crowd.strangers == 0

        await eventually(empty)


@pytest.mark.slow
async def test_when_files_have_run_out_it_is_said_once_and_goes_on_when_there_are_some() -> None:
    """The listening socket of a process without a file to spare: the real error, of the real system call."""
    came: list[socket.socket] = []
    bound = socket.create_server(("127.0.0.1", 0))
    spared: list[str] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    callers = [socket.socket() for _ in range(5)]
    for one in callers:
        one.setblocking(False)
    with capture_logs() as said:
        acceptor = Acceptor(bound, lambda connection, _: came.append(connection), lambda: spared.append("one"))
        await _without_files(soft, hard, lambda: _connect(acceptor, bound, callers), spared)

        async def all_in() -> bool:
            return len(came) == len(callers)

        await eventually(all_in)
    acceptor.close()
    for one in (*came, *callers):
        one.close()
    assert [one["event"] for one in said] == ["nobody can be let in for the moment"]
    assert said[0]["error"] == "Too many open files"


def _connect(acceptor: Acceptor, bound: socket.socket, callers: list[socket.socket]) -> None:
    for one in callers:
        with contextlib.suppress(BlockingIOError):
            one.connect(bound.getsockname())
    acceptor.start()


async def _without_files(soft: int, hard: int, begin: Callable[[], Any], spared: list[str]) -> None:
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    ballast: list[socket.socket] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, highest + 8), hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                ballast.append(socket.socket())
        begin()

        async def asked_several_times() -> bool:
            return len(spared) > 2

        await eventually(asked_several_times)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in ballast:
            one.close()
