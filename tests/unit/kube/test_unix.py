"""Writes over the engine's socket, against a server that says exactly what a test wants, in the pieces that it wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herder.kube import unix
from herder.kube.errors import Unreachable
from herder.kube.transport import Call, Reply
from herder.kube.unix import SocketTransport

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
PATCH = Call(
    "PATCH", "/api/v1/namespaces/n/configmaps/a", {"fieldManager": "me & you"}, b'{"data":{}}', "application/merge-patch+json"
)


class Server:
    """Each connection is served by the script, with its number."""

    def __init__(self, transport: SocketTransport) -> None:
        self.transport = transport
        self.connections = 0
        self.heads: list[str] = []

    async def send(self, call: Call = PATCH) -> Reply:
        async with asyncio.timeout(10):
            return await self.transport.send(call)


@asynccontextmanager
async def serving(tmp_path: Path, script: Script) -> AsyncGenerator[Server]:
    path = tmp_path / "s"
    server = Server(SocketTransport(path, "test"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            await script(reader, writer, server.connections)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_unix_server(serve, str(path))
    try:
        yield server
    finally:
        await server.transport.close()
        listening.close()


async def request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("Content-Length:")), 0)
    return head, await reader.readexactly(length)


def answer(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    named = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


async def polite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
    while True:
        _, body = await request(reader)
        writer.write(answer(body))


async def test_a_request_is_whole_and_says_who_asks(tmp_path: Path) -> None:
    heads: list[str] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            head, body = await request(reader)
            heads.append(head)
            writer.write(answer(body))

    async with serving(tmp_path, script) as server:
        assert (await server.send()).body == PATCH.body
        await server.send(Call("DELETE", "/api/v1/nodes/a"))
    first, second = heads
    assert first.startswith("PATCH /api/v1/namespaces/n/configmaps/a?fieldManager=me+%26+you HTTP/1.1\r\n")
    assert "User-Agent: test/1\r\n" in first and "Content-Type: application/merge-patch+json\r\n" in first
    assert second.startswith("DELETE /api/v1/nodes/a HTTP/1.1\r\n") and "Content-Length" not in second


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_an_answer_may_come_in_any_pieces(tmp_path: Path, size: int) -> None:
    body = b"x" * 300
    whole = answer(body, "403 Forbidden", warning='299 - "old"', WARNING='299 - "older"')

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request(reader)
        for start in range(0, len(whole), size):
            writer.write(whole[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)

    async with serving(tmp_path, script) as server:
        assert await server.send() == Reply(403, body, ('299 - "old"', '299 - "older"'))


async def test_a_connection_is_used_again_and_several_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, polite) as server:
        for _ in range(5):
            await server.send()
        assert server.connections == 1
        bodies = [str(number).encode() for number in range(8)]
        replies = await asyncio.gather(*(server.send(Call("POST", "/a", body=body)) for body in bodies))
        assert [reply.body for reply in replies] == bodies
        assert server.connections <= 8


@pytest.mark.parametrize("farewell", [answer(Connection="close"), answer().replace(b"HTTP/1.1", b"HTTP/1.0")])
async def test_a_connection_that_is_said_to_end_is_not_used_again(tmp_path: Path, farewell: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            await request(reader)
            writer.write(farewell)

    async with serving(tmp_path, script) as server:
        await server.send()
        await server.send()
        assert server.connections == 2


async def test_a_connection_that_was_closed_while_nobody_used_it_is_not_missed(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request(reader)
        writer.write(answer())

    async with serving(tmp_path, script) as server:
        for _ in range(3):
            await server.send()
            await asyncio.sleep(0.05)
        assert server.connections == 3


async def test_a_connection_that_the_server_may_be_about_to_close_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix, "IDLE", 0.05)
    async with serving(tmp_path, polite) as server:
        await asyncio.gather(*(server.send() for _ in range(3)))
        before = server.connections
        await server.send()
        assert server.connections == before
        await asyncio.sleep(0.1)
        await server.send()
        assert server.connections == before + 1
        assert len(server.transport._connections) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "the server has closed the connection"),
        (answer(b"whole")[:-1], "the server has closed the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the answer does not name its length"),
        (answer().replace(b"Content-Length: 2", b"Content-Length: many"), "the answer does not name its length"),
        (answer() + b"more", "the answer is longer than it says"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "which begins no answer of HTTP/1.1"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "which begins no answer of HTTP/1.1"),
        (b"x" * 70_000, "the head of the answer does not end"),
    ],
)
async def test_what_is_no_whole_answer_is_unreachable_and_the_next_request_is_not_harmed(
    tmp_path: Path, said: bytes, why: str
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if number > 1:
            return await polite(reader, writer, number)
        await request(reader)
        writer.write(said)
        return None

    async with serving(tmp_path, script) as server:
        with pytest.raises(Unreachable, match="PATCH /api/v1/namespaces/n/configmaps/a: no whole answer") as caught:
            await server.send()
        assert why in str(caught.value)
        assert (await server.send()).body == PATCH.body


async def test_a_write_is_never_sent_twice(tmp_path: Path) -> None:
    """Nobody knows what became of the first one."""
    asked: list[int] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request(reader)
        writer.write(answer())
        await request(reader)
        asked.append(number)

    async with serving(tmp_path, script) as server:
        await server.send()
        with pytest.raises(Unreachable):
            await server.send()
        assert asked == [1] and server.connections == 1


async def test_who_stops_waiting_leaves_no_answer_to_the_next_one(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            _, body = await request(reader)
            await asyncio.sleep(0.2 if body == b"slow" else 0)
            writer.write(answer(body))

    async with serving(tmp_path, script) as server:
        slow = asyncio.create_task(server.send(Call("POST", "/a", body=b"slow")))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        with pytest.raises(Unreachable, match="TimeoutError"):
            await server.send(Call("POST", "/a", body=b"slow", patience=0.05))
        for _ in range(3):
            assert (await server.send(Call("POST", "/a", body=b"quick"))).body == b"quick"
            await asyncio.sleep(0.1)


async def test_what_nobody_asked_for_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        _, body = await request(reader)
        writer.write(answer(body))
        await asyncio.sleep(0.05)
        writer.write(answer(b"another's"))
        await polite(reader, writer, number)

    async with serving(tmp_path, script) as server:
        await server.send()
        await asyncio.sleep(0.1)
        assert (await server.send()).body == PATCH.body
        assert server.connections == 2


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä", ""])
async def test_what_is_no_path_is_not_sent(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path, polite) as server:
        with pytest.raises(ValueError, match="is no path of a request"):
            await server.send(Call("DELETE", path))
        assert not server.connections


async def test_nobody_there_is_unreachable(tmp_path: Path) -> None:
    transport = SocketTransport(tmp_path / "nobody", "test")
    with pytest.raises(Unreachable):
        await transport.send(PATCH)
    await transport.close()


async def test_after_the_end_no_connection_is_left(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        try:
            await polite(reader, writer, number)
        finally:
            ended.set()

    async with serving(tmp_path, script) as server:
        await server.send()
        await server.transport.close()
        async with asyncio.timeout(5):
            await ended.wait()
