"""Writes over a unix socket: answered by hand as by the other server, and left to it where they are not plain."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from herder.server import presenting
from herder.server.http import HttpServer
from herder.server.patience import Patience
from herder.server.quick_writes import Unusual, read_head, written
from herder.server.request import BODY_LIMIT, Answer, Request, Response, Stream
from tests.unit.server.inside import Inside, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Door:
    def __init__(self, inside: Inside, server: HttpServer, path: Path) -> None:
        self.inside, self.server, self._path = inside, server, path

    async def open(self) -> Connection:
        return await asyncio.open_unix_connection(str(self._path), limit=1 << 23)

    async def ask(self, *requests: bytes) -> list[tuple[str, bytes]]:
        """On one connection, one after the other."""
        reader, writer = await self.open()
        answers = list[tuple[str, bytes]]()
        for request in requests:
            writer.write(request)
            answers.append(await answer_of(reader))
        writer.close()
        return answers

    def slow_down(self, seconds: float) -> None:
        quick = self.inside.router.handle

        async def slow(request: Request) -> Answer:
            await asyncio.sleep(seconds)
            return await quick(request)

        self.inside.router.handle = slow

    @property
    def quick(self) -> int:
        return len(self.server._quick.connections)  # pyright: ignore[reportPrivateUsage]


async def answer_of(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    async with asyncio.timeout(10):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"Content-Length: (\d+)", head)
        assert length is not None, head
        return head, await reader.readexactly(int(length.group(1)))


@asynccontextmanager
async def door(folder: Path, patience: Patience | None = None) -> AsyncGenerator[Door]:
    path = folder / "sock"
    folder.mkdir(exist_ok=True)
    async with engine_inside(folder) as inside:
        server = HttpServer(inside.router, patience or Patience())
        await server.start(None, None, path)
        try:
            yield Door(inside, server, path)
        finally:
            await server.stop()


def request(method: str, path: str, body: bytes = b"", content_type: str = "application/json", *, extra: str = "") -> bytes:
    content = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: herder\r\nUser-Agent: test/1\r\n{content}{extra}\r\n".encode() + body


def named(name: str, data: str = "") -> bytes:
    return b'{"metadata":{"name":"%s"},"data":{%s}}' % (name.encode(), data.encode())


# What the other server also answers, and what it refuses; each with the answer's status.
STORY: list[tuple[str, str, str, bytes, str]] = [
    ("201", "POST", MAPS, named("a", '"k":"v"'), "application/json"),
    ("409", "POST", MAPS, named("a"), "application/json"),
    ("422", "POST", MAPS, named("A_b"), "application/json"),
    ("400", "POST", MAPS, b"{", "application/json"),
    ("201", "POST", f"{MAPS}?fieldManager=me%20too&dryRun=All", named("c"), "application/json"),
    ("201", "POST", MAPS, named("warned", '"k":"v"').replace(b'"data"', b'"unknown \xc3\xa4 \\n":1,"data"'), "application/json"),
    ("200", "PATCH", f"{MAPS}/a?fieldManager=me", b'{"data":{"k":"w"}}', MERGE),
    ("415", "PATCH", f"{MAPS}/a", b"{}", "text/plain"),
    ("404", "PATCH", f"{MAPS}/none", b"{}", MERGE),
    ("405", "PUT", MAPS, b"{}", "application/json"),
    ("404", "POST", "/apis/none.example.com/v1/things", b"{}", "application/json"),
    ("200", "DELETE", f"{MAPS}/a", b"", ""),
    ("200", "DELETE", MAPS, b"", ""),
]


@pytest.mark.slow
async def test_they_are_answered_as_by_the_other_server(tmp_path: Path) -> None:
    """A header that it does not know makes a connection the other server's."""
    async with door(tmp_path / "one") as ours, door(tmp_path / "two") as other:
        mine = await ours.ask(*(request(*one[1:]) for one in STORY))
        theirs = await other.ask(*(request(*one[1:], extra="X-Other: yes\r\n") for one in STORY))
    for (status, *what), (head, body), (other_head, other_body) in zip(STORY, mine, theirs, strict=True):
        assert head.startswith(f"HTTP/1.1 {status} "), (what, head, body)
        assert body == other_body, what
        lines, other_lines = (sorted(set(one.split("\r\n")) - {""}) for one in (head, other_head))
        assert lines == [line for line in other_lines if not line.startswith("Date: ")], what


async def test_one_connection_serves_many_writes_and_then_something_else(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        reader, writer = await ours.open()
        for number in range(3):
            writer.write(request("POST", MAPS, named(f"m{number}")))
            assert (await answer_of(reader))[0].startswith("HTTP/1.1 201 ")
            assert ours.quick == 1
        writer.write(request("GET", f"{MAPS}/m1"))
        assert b'"name":"m1"' in (await answer_of(reader))[1]
        assert ours.quick == 0
        writer.write(request("DELETE", f"{MAPS}/m1"))
        assert (await answer_of(reader))[0].startswith("HTTP/1.1 200 ")
        writer.close()


@pytest.mark.slow
async def test_a_long_answer_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are deleted together all are told, and the engine would rather tell many in pieces."""
    monkeypatch.setattr(presenting, "STREAM_ABOVE", 0)
    async with door(tmp_path) as ours:
        for number in range(5):
            await ours.inside.ask("POST", MAPS, named(f"m{number}"))
        head, body = (await ours.ask(request("DELETE", MAPS)))[0]
        assert head.startswith("HTTP/1.1 200 ")
        assert [one["metadata"]["name"] for one in msgspec.json.decode(body)["items"]] == [f"m{number}" for number in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 4, 30, 90, -1])
async def test_what_does_not_come_at_once_is_answered_too(tmp_path: Path, cut: int) -> None:
    whole = request("POST", MAPS, named("a"))
    async with door(tmp_path) as ours:
        reader, writer = await ours.open()
        writer.write(whole[:cut])
        await asyncio.sleep(0.05)
        writer.write(whole[cut:])
        assert (await answer_of(reader))[0].startswith("HTTP/1.1 201 ")
        writer.close()


@pytest.mark.slow
async def test_a_large_body_is_read_whole_and_one_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        large = named("large", '"k":"%s"' % ("x" * 900_000))
        assert (await ours.ask(request("POST", MAPS, large)))[0][0].startswith("HTTP/1.1 201 ")
        head, _ = (await ours.ask(request("POST", MAPS, b" " * (BODY_LIMIT + 1))))[0]
        assert head.startswith("HTTP/1.1 413 ")


@pytest.mark.slow
async def test_requests_that_do_not_wait_for_their_answers_get_them_in_order(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        reader, writer = await ours.open()
        writer.write(b"".join(request("POST", MAPS, named(f"m{number}")) for number in range(20)) + request("GET", f"{MAPS}/m0"))
        for number in range(20):
            assert f'"name":"m{number}"'.encode() in (await answer_of(reader))[1]
        assert b'"name":"m0"' in (await answer_of(reader))[1]
        writer.close()


@pytest.mark.slow
async def test_what_it_sends_while_it_waits_stays_within_reason(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        ours.inside.router.handle = _never
        reader, writer = await ours.open()
        writer.write(request("POST", MAPS, named("a")))
        await asyncio.sleep(0.05)
        writer.write(b"x" * (BODY_LIMIT + 1))
        async with asyncio.timeout(10):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)


async def _never(request: Request) -> Answer:
    await asyncio.sleep(3600)
    raise AssertionError


@pytest.mark.slow
async def test_who_hangs_up_is_not_worked_for(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def wait(request: Request) -> Answer:
        try:
            return await _never(request)
        finally:
            ended.set()

    async with door(tmp_path) as ours:
        ours.inside.router.handle = wait
        _, writer = await ours.open()
        writer.write(request("POST", MAPS, named("a")))
        await asyncio.sleep(0.05)
        writer.close()
        async with asyncio.timeout(10):
            await ended.wait()


@pytest.mark.slow
async def test_a_bug_of_ours_is_an_answer_and_the_next_one_is_served(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        right = ours.inside.router.handle

        async def wrong(request: Request) -> Answer:
            ours.inside.router.handle = right
            raise RuntimeError("oh")

        ours.inside.router.handle = wrong
        first, second = await ours.ask(request("POST", MAPS, named("a")), request("POST", MAPS, named("a")))
        assert first[0].startswith("HTTP/1.1 500 ") and b"a bug of its own" in first[1]
        assert second[0].startswith("HTTP/1.1 201 ")


@pytest.mark.slow
async def test_so_is_one_that_is_met_in_the_middle_of_a_long_answer(tmp_path: Path) -> None:
    closed: list[bool] = []

    async def chunks() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError("oh")

    async def wrong(request: Request) -> Answer:
        return Stream(chunks, close=lambda: closed.append(True))

    async with door(tmp_path) as ours:
        ours.inside.router.handle = wrong
        for head, body in await ours.ask(*[request("DELETE", MAPS)] * 2):
            assert head.startswith("HTTP/1.1 500 ") and b"half" not in body
        assert closed == [True, True]


@pytest.mark.slow
async def test_a_server_that_stops_finishes_what_it_has_begun(tmp_path: Path) -> None:
    async with door(tmp_path) as ours:
        ours.slow_down(0.2)
        reader, writer = await ours.open()
        idle, _ = await ours.open()
        writer.write(request("POST", MAPS, named("a")))
        await asyncio.sleep(0.05)
        await ours.server.stop()
        assert (await answer_of(reader))[0].startswith("HTTP/1.1 201 ")
        assert await reader.read() == b"" and await idle.read() == b""


@pytest.mark.slow
async def test_one_that_is_silent_for_too_long_is_hung_up_on_but_not_while_it_waits(tmp_path: Path) -> None:
    async with door(tmp_path, Patience(head=0.2, body=3600, taking=3600)) as ours:
        ours.slow_down(0.5)
        reader, writer = await ours.open()
        writer.write(request("POST", MAPS, named("a")))
        assert (await answer_of(reader))[0].startswith("HTTP/1.1 201 ")
        async with asyncio.timeout(10):
            assert await reader.read() == b""


@pytest.mark.parametrize(
    "raw",
    [
        request("GET", MAPS),
        request("POST", "/version"),
        request("POST", "/herder/backup"),
        request("POST", "/api/v1/../v1/nodes"),
        request("POST", "/api/v1/nodes#a"),
        request("POST", "http://herder/api/v1/nodes"),
        request("POST", MAPS, b"{}", extra="Authorization: Bearer x\r\n"),
        request("POST", MAPS, b"{}", extra="Impersonate-User: x\r\n"),
        request("POST", MAPS, b"{}", extra="Transfer-Encoding: chunked\r\n"),
        request("POST", MAPS, b"{}", extra="Content-Encoding: gzip\r\n"),
        request("POST", MAPS, b"{}", extra="Expect: 100-continue\r\n"),
        request("POST", MAPS, b"{}", extra="Connection: close\r\n"),
        request("POST", MAPS, b"{}", extra="Content-Length: 2\r\n"),
        request("POST", MAPS, b"{}", extra="content-length: 2\r\n"),
        request("POST", MAPS, b"{}", extra=" folded\r\n"),
        request("POST", MAPS, b"{}", extra="Accept : x\r\n"),
        request("POST", MAPS, b"{}", extra="Accept: a\x01b\r\n"),
        request("POST", MAPS, b"{}").replace(b"Content-Length: 2", b"Content-Length: -2"),
        request("POST", MAPS, b"{}").replace(b"Content-Length: 2", b"Content-Length: 0x2"),
        request("POST", MAPS, b"{}").replace(b"Content-Length: 2", b"Content-Length: 99999999"),
        request("POST", MAPS, b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        request("POST", MAPS, b"{}").replace(b"\r\n", b"\n"),
        b"",
        b"\x16\x03\x01\x02\x00\x01",
    ],
)
def test_what_is_not_plain_is_left_to_the_other_server(raw: bytes) -> None:
    with pytest.raises(Unusual):
        read_head(raw)


def test_a_text_of_somebody_elses_begins_no_line_of_its_own() -> None:
    raw = written(Response(200, b"", warnings=["a\r\nSet-Cookie: b"], headers={"Retry-After": "1\r\nX: y"}))
    assert b"\r\nSet-Cookie" not in raw and b"\r\nX:" not in raw
