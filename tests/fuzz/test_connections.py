"""Clients that are slow, rude, or gone: nobody else waits for them, and they cost no memory that grows."""

import asyncio
import contextlib
import gzip
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.program import Up
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.processes import client_context
from tests.engines.resources import CONFIG_MAPS

WATCHES, STUCK = 1000, 50
PATH = CONFIG_MAPS.path("default")
# For a machine that is busy with other tests as well; by itself it is a few milliseconds.
SOON = 3.0


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("rude"), nodes=0) as running:
        yield running


@pytest.fixture(scope="module")
def door(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return up.connection(tmp_path_factory.mktemp("admin"))


@pytest.fixture
async def api(door: Engine) -> AsyncIterator[Api]:
    async with connect(door) as connected:
        yield connected


def memory_of(up: Up) -> int:
    """Of the engine, in bytes that are really there."""
    pages = int((Path("/proc") / str(up.child("engine")) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


async def opened(up: Up, engine: Engine, *, encrypted: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = client_context(engine) if encrypted else None
    return await asyncio.open_connection("127.0.0.1", up.port, ssl=context)


async def answers_soon(api: Api) -> None:
    began = time.monotonic()
    async with asyncio.timeout(SOON):
        assert (await api.list(CONFIG_MAPS, "default", limit=1)).code == 200
    assert time.monotonic() - began < SOON


class Watching:
    """Counts what one watch sees, as cheaply as it can."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self.seen = 0
        self.open = asyncio.Event()

    async def run(self, wanted: int) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._url, timeout=timeout) as answer:
            self.open.set()
            async for chunk in answer.content.iter_any():
                self.seen += chunk.count(b'"type":"ADDED"') + chunk.count(b'"type":"MODIFIED"')
                if self.seen >= wanted:
                    return


async def stuck_watch(up: Up, engine: Engine, version: str) -> asyncio.StreamWriter:
    """Asks for everything and never reads a byte of it."""
    raw = socket.create_connection(("127.0.0.1", up.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    context = client_context(engine)
    reader, writer = await asyncio.open_connection(sock=raw, ssl=context, server_hostname="127.0.0.1", limit=1024)
    writer.write(f"GET {PATH}?watch=1&resourceVersion={version} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    return writer


async def test_a_thousand_watches_and_fifty_that_never_read(up: Up, door: Engine, api: Api) -> None:
    version = (await api.list(CONFIG_MAPS, "default")).ok["metadata"]["resourceVersion"]
    url = f"{door.server}{PATH}?watch=1&resourceVersion={version}"
    stuck = [await stuck_watch(up, door, version) for _ in range(STUCK)]
    connector = aiohttp.TCPConnector(ssl=client_context(door), limit=0)
    writes = 20
    async with aiohttp.ClientSession(connector=connector) as session:
        watchers = [Watching(session, url) for _ in range(WATCHES)]
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for start in range(0, WATCHES, 50):
                some = watchers[start : start + 50]
                for watcher in some:
                    group.create_task(watcher.run(writes))
                for watcher in some:
                    await watcher.open.wait()
            before = memory_of(up)
            for number in range(writes):
                await answers_soon(api)
                body = {"metadata": {"name": f"w-{number}"}, "data": {"v": "x" * 2000}}
                (await api.create(CONFIG_MAPS, body, "default")).ok  # noqa: B018
        assert {watcher.seen for watcher in watchers} == {writes}
        assert memory_of(up) - before < 100 * 1024 * 1024
    for writer in stuck:
        writer.transport.abort()


async def test_those_who_never_read_are_let_go_and_cost_little(up: Up, door: Engine, api: Api) -> None:
    """Far more is written than their queues and the system's buffers hold."""
    version = (await api.list(CONFIG_MAPS, "default")).ok["metadata"]["resourceVersion"]
    stuck = [await stuck_watch(up, door, version) for _ in range(20)]
    body = {"metadata": {"name": "big"}, "data": {"v": "x" * 300_000}}
    (await api.create(CONFIG_MAPS, body, "default")).ok  # noqa: B018
    before = memory_of(up)
    for number in range(200):
        patch = {"data": {"n": str(number)}}
        assert (await api.patch(CONFIG_MAPS, "big", patch, "default")).code == 200
    # The history of 64 MiB is one for all; 20 × 200 × 300 KB would be more than a gigabyte.
    assert memory_of(up) - before < 300 * 1024 * 1024
    await answers_soon(api)
    for writer in stuck:
        writer.transport.abort()


async def test_slow_bodies_hold_up_nobody(up: Up, door: Engine, api: Api) -> None:
    writers: list[asyncio.StreamWriter] = []
    for _ in range(50):
        _, writer = await opened(up, door)
        writer.write(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode()
        )
        await writer.drain()
        writers.append(writer)
    for _ in range(5):
        for writer in writers:
            writer.write(b" ")
        await answers_soon(api)
    for writer in writers:
        writer.transport.abort()


async def test_slow_heads_and_idle_connections_hold_up_nobody(up: Up, door: Engine, api: Api) -> None:
    writers = [(await opened(up, door))[1] for _ in range(50)]
    raw = [socket.create_connection(("127.0.0.1", up.port)) for _ in range(100)]
    for number, writer in enumerate(writers):
        writer.write(b"GET /api HTTP/1.1\r\nX-Slow: "[: number % 28])
        await answers_soon(api) if number % 10 == 0 else None
    await answers_soon(api)
    for one in raw:
        one.close()
    for writer in writers:
        writer.transport.abort()


RUDE = {
    "nothing": b"",
    "no http": b"hello\r\n\r\n",
    "half a head": b"GET / HTTP/1.1\r\nHost",
    "a strange method": b"\x00\xff\xfe / HTTP/1.1\r\n\r\n",
    "a strange version": b"GET / HTTP/9.9\r\n\r\n",
    "no length": b"POST /api HTTP/1.1\r\nContent-Length: abc\r\n\r\n",
    "a negative length": b"POST /api HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    "two lengths": b"POST /api HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunks": b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n\r\n",
    "a huge header": b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: a\r\n" % number for number in range(20_000)) + b"\r\n",
    "a huge path": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    "a strange path": b"GET \xff\xfe\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "an absolute address": b"GET http://other.example.com/api HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT other.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "another protocol": b"GET /api HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a packed body": b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
    "expectations": b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
}


@pytest.mark.parametrize("raw", RUDE.values(), ids=RUDE)
async def test_rude_requests_are_refused_or_dropped(up: Up, door: Engine, api: Api, raw: bytes) -> None:
    reader, writer = await opened(up, door)
    # Some are waited on for the rest of what they say.
    with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
        writer.write(raw)
        await writer.drain()
        async with asyncio.timeout(0.5):
            head = await reader.read(200)
            assert b" 500 " not in head[:20]
    writer.transport.abort()
    await answers_soon(api)


async def test_a_packed_body_that_grows_without_end_is_refused(up: Up, api: Api) -> None:
    bomb = gzip.compress(b" " * (200 * 1024 * 1024), 9)
    before = memory_of(up)
    for encoding in ("gzip", "deflate", "br", "zstd"):
        # It may hang up while we still send.
        with contextlib.suppress(aiohttp.ClientConnectionError):
            reply = await api.request("POST", PATH, bomb, headers={"Content-Encoding": encoding})
            assert reply.code in (400, 415)
    assert memory_of(up) - before < 100 * 1024 * 1024
    await answers_soon(api)


async def test_requests_in_one_go_are_answered_in_order_and_cut_off_ones_dropped(up: Up, door: Engine, api: Api) -> None:
    reader, writer = await opened(up, door)
    one = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(one * 50 + b"GET /version HTTP/1.1\r\nHo")
    await writer.drain()
    async with asyncio.timeout(10):
        seen = b""
        while seen.count(b"HTTP/1.1 200") < 50:
            seen += await reader.read(65536)
    writer.transport.abort()
    await answers_soon(api)


async def test_noise_instead_of_a_handshake_is_dropped(up: Up, api: Api) -> None:
    for noise in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(2000),
        b"\x16\x03\x01\xff\xff" + b"\x00" * 1000,
        b"\x16\x03\x01\x00\x05\x01",
    ):
        for _ in range(20):
            with contextlib.suppress(ConnectionError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", up.port)
                writer.write(noise)
                await writer.drain()
                async with asyncio.timeout(0.05):
                    await reader.read(100)
                writer.transport.abort()
    await answers_soon(api)


async def test_a_thousand_connections_that_come_and_go(up: Up, door: Engine, api: Api) -> None:
    before = memory_of(up)
    for _ in range(20):
        pairs = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", up.port) for _ in range(50)))
        for _, writer in pairs:
            writer.transport.abort()
    await answers_soon(api)
    assert memory_of(up) - before < 150 * 1024 * 1024
