"""The transport against small real servers that misbehave on purpose."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from herder.api.core import ConfigMap
from herder.kube.client import Client
from herder.kube.credentials import Anonymous, Kept, always
from herder.kube.errors import ServerFailed, TooManyRequests, Unreachable, Unreadable
from herder.kube.http import HttpTransport, lively_socket
from herder.kube.resources import CONFIG_MAPS, Key
from herder.kube.transport import Call
from herder.kube.trust import Material, Trust
from herder.kube.unix import SocketTransport
from tests.engines.certificates import Authority
from tests.engines.processes import free_ports

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
KEY = Key("n", "a")


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client_of(handler: Handler, path: str = "") -> AsyncGenerator[Client]:
    async with (
        serving(handler) as server,
        Client(HttpTransport.over_tcp(server + path, "test", Anonymous()), "test") as client,
    ):
        yield client


def refusing(times: int, status: int, **headers: str) -> tuple[Handler, list[str]]:
    """So many refusals, then an object."""
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.method)
        if len(asked) <= times:
            return web.json_response({"kind": "Status", "message": "not now"}, status=status, headers=headers)
        return web.json_response({"metadata": {"name": "a"}})

    return answer, asked


@pytest.mark.parametrize("status", [429, 503])
async def test_a_read_that_is_told_to_come_back_comes_back(status: int) -> None:
    handler, asked = refusing(2, status, **{"Retry-After": "0"})
    async with client_of(handler) as client:
        assert (await client.get(CONFIG_MAPS, KEY)).name == "a"
    assert asked == ["GET"] * 3


async def test_it_gives_up_after_a_while_and_says_why() -> None:
    handler, asked = refusing(100, 429, **{"Retry-After": "0"})
    async with client_of(handler) as client:
        with pytest.raises(TooManyRequests, match="not now"):
            await client.get(CONFIG_MAPS, KEY)
    assert len(asked) == 11


async def test_nobody_waits_an_hour_because_a_server_says_so() -> None:
    handler, asked = refusing(1, 503, **{"Retry-After": "3600"})
    async with client_of(handler) as client:
        with pytest.raises(ServerFailed):
            await client.get(CONFIG_MAPS, KEY)
    assert asked == ["GET"]


async def test_a_write_is_never_repeated_here() -> None:
    handler, asked = refusing(1, 429, **{"Retry-After": "0"})
    async with client_of(handler) as client:
        with pytest.raises(TooManyRequests) as refused:
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "n")
    assert asked == ["POST"]
    assert refused.value.passing


async def test_a_refusal_without_a_time_to_wait_is_not_repeated() -> None:
    handler, asked = refusing(1, 500)
    async with client_of(handler) as client:
        with pytest.raises(ServerFailed):
            await client.get(CONFIG_MAPS, KEY)
    assert asked == ["GET"]


async def test_a_server_behind_a_path_is_asked_there() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.json_response({"metadata": {"name": request.path_qs}})

    async with client_of(answer, "/k8s/clusters/c-1/") as client:
        assert (await client.get(CONFIG_MAPS, KEY)).name == "/k8s/clusters/c-1/api/v1/namespaces/n/configmaps/a"


async def test_a_proxy_is_asked_in_the_servers_place() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.json_response({"metadata": {"name": str(request.url)}})

    async with serving(answer) as proxy:
        transport = HttpTransport.over_tcp("http://far.away:8080", "test", Anonymous(), proxy=proxy)
        async with Client(transport, "test") as client:
            assert (await client.get(CONFIG_MAPS, KEY)).name.startswith("http://far.away:8080/api/v1/")


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b'{"metadata": {}')
        assert request.transport is not None
        request.transport.close()
        return response

    async with client_of(answer) as client:
        with pytest.raises(Unreachable, match="no whole answer"):
            await client.get(CONFIG_MAPS, KEY)


async def test_a_watch_that_breaks_off_says_so_after_what_had_come() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}\n{"type": "ADD')
        assert request.transport is not None
        request.transport.close()
        return response

    seen: list[str] = []
    async with client_of(answer) as client:
        with pytest.raises(Unreachable):
            async for event in client.watch(CONFIG_MAPS, "1"):
                seen.append(event.type)
    assert seen == ["ADDED"]


async def test_a_watch_that_ends_in_the_middle_of_a_line_broke_off_too() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b'{"type": "ADDED", "object": {}}\n{"type": "ADD')

    async with client_of(answer) as client:
        with pytest.raises(Unreachable, match="in the middle of an event"):
            async for _ in client.watch(CONFIG_MAPS, "1"):
                pass


async def test_an_event_may_come_in_many_pieces() -> None:
    line = b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}\n\n{"type": "BOOKMARK", "object": {}}\n'

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for byte in line:
            await response.write(bytes([byte]))
            await asyncio.sleep(0)
        return response

    async with client_of(answer) as client:
        assert [event.type async for event in client.watch(CONFIG_MAPS, "1")] == ["ADDED", "BOOKMARK"]


def in_turn(count: int) -> Handler:
    """So many lines, each long enough after the last one to be read alone."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(count):
            await response.write(f"{number}\n".encode())
            await asyncio.sleep(0.001)
        return response

    return answer


async def test_while_many_events_come_they_are_read_together() -> None:
    count = 60
    async with client_of(in_turn(count)) as client, client.transport.stream(Call("GET", "/")) as stream:
        pieces = [piece async for piece in stream]
    assert b"".join(pieces).split() == [str(number).encode() for number in range(count)]
    assert len(pieces) < count / 2


async def test_over_tls_the_loop_is_not_even_woken_up_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, reads = 60, 0
    read = SSLProtocol.buffer_updated

    def counting(self: SSLProtocol, size: int) -> None:
        nonlocal reads
        reads += 1
        read(self, size)

    authority = Authority(tmp_path)
    pair = authority.sign("serving")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    trust = Trust(authority=Material("certificate-authority", path=str(authority.certificate)))
    async with serving(in_turn(count), tls) as server:
        transport = HttpTransport.over_tcp(server, "test", Kept(trust, always("")))
        async with Client(transport, "test"), transport.stream(Call("GET", "/")) as stream:
            monkeypatch.setattr(SSLProtocol, "buffer_updated", counting)
            told = b"".join([piece async for piece in stream])
    assert told.split() == [str(number).encode() for number in range(count)]
    assert reads < count / 2


async def test_a_watch_that_breaks_off_while_nobody_reads_has_brought_what_had_come() -> None:
    async def breaking(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(3):
            await response.write(f"{number}\n".encode())
            await asyncio.sleep(0.001)
        assert request.transport is not None
        request.transport.close()
        return response

    told = b""
    async with client_of(breaking) as client, client.transport.stream(Call("GET", "/")) as stream:
        with pytest.raises(Unreachable):
            async for piece in stream:
                told += piece
    assert told.split() == [b"0", b"1", b"2"]


async def test_a_server_that_takes_too_long_is_unreachable() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with client_of(answer) as client:
        with pytest.raises(Unreachable):
            await client.transport.send(Call("GET", "/", patience=0.05))


async def test_an_answer_that_is_no_object_is_unreadable() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="<html>\n")

    async with client_of(answer) as client:
        with pytest.raises(Unreadable, match="configmaps"):
            await client.get(CONFIG_MAPS, KEY)
        with pytest.raises(Unreadable, match="not a list"):
            await client.list(CONFIG_MAPS)
        with pytest.raises(Unreadable, match="not an event"):
            async for _ in client.watch(CONFIG_MAPS, "1"):
                pass


async def test_a_proxys_refusal_is_an_error_with_its_text() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="bad gateway", status=502)

    async with client_of(answer) as client:
        with pytest.raises(ServerFailed, match="bad gateway"):
            await client.get(CONFIG_MAPS, KEY)


async def test_a_redirect_is_not_followed_with_our_credentials() -> None:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with client_of(answer) as client:
        with pytest.raises(Unreachable, match="it answered 302, which leads elsewhere, and that is never followed"):
            await client.get(CONFIG_MAPS, KEY)
        with pytest.raises(Unreachable, match="leads elsewhere"):
            async with client.transport.stream(Call("GET", "/api")) as pieces:
                await anext(pieces)
    assert len(asked) == 2


async def test_nor_is_one_of_a_console() -> None:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with serving(answer) as server:
        transport = HttpTransport.over_tcp(server, "test", Anonymous())
        with pytest.raises(Unreachable, match="it answered 307, which leads elsewhere"):
            async with transport.websocket("/attach", (), "v4.channel.k8s.io"):
                pass
        await transport.close()
    assert asked == ["/attach"]


def test_a_connection_notices_by_itself_that_the_server_is_gone() -> None:
    """A watch waits without end: the kernel has to look."""
    made = lively_socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


async def test_nobody_at_the_other_end_is_unreachable(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    for transport in (
        HttpTransport.over_tcp(f"http://127.0.0.1:{port}", "test", Anonymous()),
        SocketTransport(tmp_path / "no socket", "test"),
    ):
        async with Client(transport, "test") as client:
            with pytest.raises(Unreachable):
                await client.get(CONFIG_MAPS, KEY)
            with pytest.raises(Unreachable):
                async for _ in client.watch(CONFIG_MAPS, "1"):
                    pass


async def test_a_unix_socket_with_a_long_story_is_spoken_to(tmp_path: Path) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.json_response({"metadata": {"name": request.host}})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    path = tmp_path / "ä b.sock"
    await web.UnixSite(runner, str(path)).start()
    async with Client(SocketTransport(path, "test"), "test") as client:
        found: ConfigMap = await client.get(CONFIG_MAPS, KEY)
        assert found.name == "herder"
    await runner.cleanup()
