"""Clients that take their time, and what of it they get."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herder.server.http import HttpServer
from herder.server.patience import Patience
from herder.server.request import Answer, Request, Stream
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LONG = 3600.0


class Door:
    def __init__(self, inside: Inside, server: HttpServer, path: Path) -> None:
        self.inside, self._server, self._path = inside, server, path

    async def open(self) -> Connection:
        return await asyncio.open_unix_connection(str(self._path))

    def hang_up(self) -> None:
        """On all; each notices only when it is its turn."""
        server = self._server._server  # pyright: ignore[reportPrivateUsage]
        quick = self._server._quick.connections  # pyright: ignore[reportPrivateUsage]
        transports = [one._transport for one in quick]  # pyright: ignore[reportPrivateUsage]
        for transport in (*server._connections.values(), *transports):  # pyright: ignore[reportPrivateUsage]
            assert transport is not None
            transport.close()

    async def deaf(self, request: str) -> socket.socket:
        """Asks, and reads nothing of the answer."""
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        connection.connect(str(self._path))
        connection.send(f"{request} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return connection

    async def fill(self, name: str, megabytes: int) -> None:
        body = config_map(name, **{f"k{number}": "x" * 1000 for number in range(900)})
        for number in range(megabytes):
            body["metadata"]["name"] = f"{name}-{number}"
            assert (await self.inside.ask("POST", MAPS, body))[0] == 201


@asynccontextmanager
async def door(folder: Path, patience: Patience) -> AsyncGenerator[Door]:
    path = folder / "sock"
    async with engine_inside(folder) as inside:
        server = HttpServer(inside.router, patience)
        await server.start(None, None, path)
        try:
            yield Door(inside, server, path)
        finally:
            await server.stop()


async def drip(writer: asyncio.StreamWriter, ended: asyncio.Task[bytes]) -> None:
    """A byte at a time, until the other side hangs up."""
    while not ended.done():
        writer.write(b"a")
        await asyncio.sleep(0.01)


async def received(reader: asyncio.StreamReader) -> bytes:
    """Until the end, which is a reset where we were still sending."""
    told = b""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            told += chunk
    return told


async def until_hung_up(connection: socket.socket) -> None:
    async def look() -> bool:
        try:
            connection.send(b" ")
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    await eventually(look, patience=30)
    connection.close()


async def answer_to_a_drip(door: Door, beginning: bytes) -> bytes:
    reader, writer = await door.open()
    writer.write(beginning)
    ended = asyncio.ensure_future(received(reader))
    async with asyncio.timeout(30):
        await drip(writer, ended)
        return await ended


@pytest.mark.slow
async def test_a_head_that_comes_a_byte_at_a_time_is_cut_off(tmp_path: Path) -> None:
    async with door(tmp_path, Patience(head=0.2, body=LONG, taking=LONG)) as open_door:
        assert await answer_to_a_drip(open_door, b"GET /version HTTP/1.1\r\nX-Slow: ") == b""


@pytest.mark.slow
async def test_so_is_the_second_on_a_connection_and_one_that_says_nothing(tmp_path: Path) -> None:
    async with door(tmp_path, Patience(head=0.2, body=LONG, taking=LONG)) as open_door:
        told = await answer_to_a_drip(open_door, b"GET /version HTTP/1.1\r\nHost: x\r\n\r\nGET /version HTTP/1.1\r\nX-Slow: ")
        assert told.count(b"HTTP/1.1 200") == 1
        reader, _ = await open_door.open()
        async with asyncio.timeout(30):
            assert await reader.read() == b""


@pytest.mark.slow
async def test_a_body_that_comes_a_byte_at_a_time_is_refused(tmp_path: Path) -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()
    async with door(tmp_path, Patience(head=LONG, body=0.2, taking=LONG)) as open_door:
        told = await answer_to_a_drip(open_door, head)
        assert told.startswith(b"HTTP/1.1 504")
        assert b"the body of the request was not whole after 0.2 s" in told


@pytest.mark.slow
async def test_who_does_not_take_a_large_answer_is_let_go(tmp_path: Path) -> None:
    async with door(tmp_path, Patience(head=LONG, body=LONG, taking=0.2)) as open_door:
        await open_door.fill("big", 4)
        await until_hung_up(await open_door.deaf(f"GET {MAPS}"))


@pytest.mark.slow
async def test_who_does_not_take_what_it_watches_is_let_go_and_who_waits_is_not(tmp_path: Path) -> None:
    async with door(tmp_path, Patience(head=LONG, body=LONG, taking=0.2)) as open_door:
        reader, writer = await open_door.open()
        version = (await open_door.inside.ask("GET", MAPS))[1]["metadata"]["resourceVersion"]
        quiet = f"GET {MAPS}?watch=1&resourceVersion={version}&fieldSelector=metadata.name=last HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(quiet.encode())
        deaf = await open_door.deaf(f"GET {MAPS}?watch=1")
        await open_door.fill("big", 4)
        await until_hung_up(deaf)
        await open_door.inside.ask("POST", MAPS, config_map("last"))
        async with asyncio.timeout(30):
            assert b'"name":"last"' in await reader.readuntil(b'"name":"last"')
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("request_line", ["GET /version", f"GET {MAPS}?watch=1", f"POST {MAPS}"])
async def test_a_connection_that_is_being_closed_when_the_answer_comes_is_no_fault_of_ours(
    tmp_path: Path, request_line: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As when everything stops at once: those that watch come back to a server that is hanging up on them."""
    closed: list[str] = []
    async with door(tmp_path, Patience()) as open_door:
        answer_to = open_door.inside.router.handle

        async def closing(request: Request) -> Answer:
            answer = await answer_to(request)
            if isinstance(answer, Stream):
                answer.close = lambda: closed.append("stream")
            open_door.hang_up()
            return answer

        open_door.inside.router.handle = closing
        reader, writer = await open_door.open()
        writer.write(f"{request_line} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        async with asyncio.timeout(30):
            assert await received(reader) == b""
        writer.close()
    assert not caplog.records
    assert closed == (["stream"] if "watch" in request_line else [])
