"""The other servers, with few places: those of nodes, of the webhook, and of health."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.app.health import MOST_CONNECTIONS, serve_health
from herder.kube.webhook.metrics import Metrics
from herder.kube.webhook.server import ReviewServer
from herder.net.crowd import limits_of
from herder.nodes.endpoint import Endpoint, Named, server_tls
from herder.pki.authority import Authority
from tests.attacks.connections import half_a_handshake, many, silent

CALLER = "kube-apiserver-kubelet-client"
FEW, MANY = 12, 60


async def healthy(url: str, tls: ssl.SSLContext | None = None) -> str:
    connector = aiohttp.TCPConnector(ssl=tls if tls is not None else False)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(20), session.get(url) as answer:
        return (await answer.text()).strip()


@pytest.mark.slow
async def test_the_api_server_reaches_a_node_however_many_say_nothing(tmp_path: Path) -> None:
    authority = Authority.make()
    (tmp_path / "ca").write_bytes(authority.pair.certificate)
    for name, pair in (("s", authority.server(("127.0.0.1",))), ("c", authority.client(CALLER, ()))):
        (tmp_path / f"{name}.crt").write_bytes(pair.certificate)
        (tmp_path / f"{name}.key").write_bytes(pair.key)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca"))
    context.load_cert_chain(tmp_path / "c.crt", tmp_path / "c.key")
    tls = server_tls(tmp_path / "s.crt", tmp_path / "s.key", tmp_path / "ca")
    endpoint = Endpoint(tls, Named((CALLER,)), RealWorld(), limits_of(FEW))
    await endpoint.start(listen_on("the test", "127.0.0.1", 0))
    address = ("127.0.0.1", endpoint.port)
    async with many(silent, address, MANY), many(half_a_handshake, address, MANY):
        assert await healthy(f"https://127.0.0.1:{endpoint.port}/healthz", context) == "ok"
        assert endpoint.connections <= FEW
    await endpoint.stop()


@pytest.mark.slow
async def test_it_reaches_the_webhook(tmp_path: Path) -> None:
    server = ReviewServer([], Metrics(CollectorRegistry()), limits=limits_of(FEW, strangers=FEW))
    server.show(Authority.make().server(("127.0.0.1",)))
    port = await server.start("127.0.0.1", 0)
    async with many(silent, ("127.0.0.1", port), MANY), many(half_a_handshake, ("127.0.0.1", port), MANY):
        assert await healthy(f"https://127.0.0.1:{port}/healthz") == "ok"
        assert server.connections <= FEW
    await server.stop()


async def test_health_is_told_and_who_asked_for_nothing_leaves() -> None:
    listener = listen_on("the test", "127.0.0.1", 0)
    address = listener.getsockname()
    async with (
        serve_health(listener, CollectorRegistry(), lambda: "", lambda: ""),
        many(silent, address, 2 * MOST_CONNECTIONS) as strangers,
        asyncio.timeout(20),
    ):
        assert await healthy(f"http://127.0.0.1:{address[1]}/healthz") == "ok"
        with contextlib.suppress(ConnectionError):
            assert await asyncio.get_running_loop().sock_recv(strangers[0], 1) == b""


async def test_what_is_no_request_is_noted_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    listener = listen_on("the test", "127.0.0.1", 0)
    address = listener.getsockname()
    with capture_logs() as said:
        async with serve_health(listener, CollectorRegistry(), lambda: "", _broken), asyncio.timeout(20):
            for garbage in (b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n") * 20:
                reader, writer = await asyncio.open_connection(*address)
                writer.write(garbage)
                assert (await reader.read(12)).endswith(b" 400")
                writer.close()
            assert not caplog.records
            # A fault of ours is still told, with all that helps to find it.
            assert "500" in await healthy(f"http://127.0.0.1:{address[1]}/readyz")
    assert [one["event"] for one in said] == ["somebody sent what is no request"]
    (fault,) = caplog.records
    assert fault.exc_info is not None
    assert "a bug" in str(fault.exc_info[1])


def _broken() -> str:
    raise RuntimeError("a bug")
