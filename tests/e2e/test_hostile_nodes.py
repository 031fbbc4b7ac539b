"""Nodes of an embedded engine that belong to somebody else: what they make of being asked for a log."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from herder.api import labels
from tests.e2e.program import Up
from tests.engines.api import Api, connect
from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.engine import Engine
from tests.engines.processes import client_context
from tests.engines.resources import CONFIG_MAPS, NODES, PODS

# As many as the engine answers at once.
AT_ONCE = 1000


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("nodes"), nodes=1) as running:
        yield running


@pytest.fixture(scope="module")
def admin(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return up.connection(tmp_path_factory.mktemp("admin"))


@pytest.fixture
async def api(admin: Engine) -> AsyncIterator[Api]:
    async with connect(admin) as connected:
        yield connected


def credentials_of(up: Up, folder: Path, node: str) -> Engine:
    own = folder / node
    own.mkdir(parents=True)
    command = [*("user", "add", f"system:node:{node}", "--group", "system:nodes"), "--kubeconfig", str(own / "config")]
    subprocess.run([str(find_program()), *command, "--data", str(up.data)], check=True, capture_output=True, timeout=60)
    return read_kubeconfig("embedded", own / "config", own)


async def register(own: Engine, node: str, port: int) -> None:
    """By the node itself: it says where it is."""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    async with connect(own) as as_node:
        await as_node.create(NODES, {"metadata": {"name": node}})
        (await as_node.patch(NODES, node, {"status": status}, subresource="status")).ok  # noqa: B018


async def place(api: Api, pod: str, node: str) -> None:
    """That of a machine: nobody is asked for the console of another."""
    body: dict[str, Any] = {"nodeName": node, "containers": [{"name": "compute", "image": "x"}]}
    metadata = {"name": pod, "annotations": {labels.GUEST: "{}"}}
    (await api.create(PODS, {"metadata": metadata, "spec": body}, "default")).ok  # noqa: B018


def log_of(pod: str) -> str:
    return f"{PODS.path('default')}/{pod}/log"


@asynccontextmanager
async def answering(own: Engine, location: str) -> AsyncGenerator[int]:
    """The node's endpoint, with its own certificate: it sends everybody elsewhere."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.client_certificate, own.client_key)

    async def leads(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": location})

    runner = web.ServerRunner(web.Server(leads), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_a_node_that_leads_elsewhere_makes_the_engine_ask_nobody(up: Up, api: Api, tmp_path: Path) -> None:
    asked: list[str] = []

    async def secret(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(text="a secret of this machine")

    runner = web.ServerRunner(web.Server(secret), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    own = credentials_of(up, tmp_path, "leads")
    async with answering(own, f"http://127.0.0.1:{runner.addresses[0][1]}/latest/meta-data") as port:
        await register(own, "leads", port)
        await place(api, "leads", "leads")
        reply = await api.request("GET", log_of("leads"))
        console = await api.request(
            "GET",
            log_of("leads").replace("/log", "/attach"),
            headers={
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
                "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
            },
        )
    await runner.cleanup()
    for answer in (reply, console):
        assert answer.code == 502, answer
        assert "node leads gave no answer of its own: it answered 302, which leads elsewhere" in answer.message
    assert asked == []


async def test_a_node_cannot_be_found_at_the_address_of_another_or_of_the_engine(up: Up, api: Api, tmp_path: Path) -> None:
    own, other = credentials_of(up, tmp_path, "poses"), credentials_of(up, tmp_path, "posed-as")
    await place(api, "poses", "poses")
    async with answering(other, "https://127.0.0.1/") as port:
        for there, who in ((port, "system:node:posed-as"), (up.port, "herder")):
            await register(own, "poses", there)
            reply = await api.request("GET", log_of("poses"))
            assert reply.code == 500
            assert f"who answers there is {who}, and not system:node:poses in system:nodes" in reply.message


async def test_a_thousand_who_wait_for_a_silent_node_keep_nobody_else_waiting(
    up: Up, admin: Engine, api: Api, tmp_path: Path
) -> None:
    own = credentials_of(up, tmp_path, "silent")
    mute = socket.create_server(("127.0.0.1", 0), backlog=2 * AT_ONCE)
    await register(own, "silent", mute.getsockname()[1])
    await place(api, "silent", "silent")
    connector = aiohttp.TCPConnector(ssl=client_context(admin), limit=0)
    async with aiohttp.ClientSession(admin.server, connector=connector) as session:
        first = [asyncio.ensure_future(session.get(log_of("silent"))) for _ in range(AT_ONCE + 50)]
        refused, waiting = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result().status for task in refused} == {429}
        # Those who still wait do so without a place of anybody else's.
        for _ in range(5):
            assert (await api.list(CONFIG_MAPS, "default", limit=1)).code == 200
        name = "written-meanwhile"
        assert (await api.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")).code == 201
        assert waiting
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*first)
        assert {answer.status for answer in answers} == {429, 500}
        sentences = {(await answer.json())["message"].split(" of node")[0][-17:] for answer in answers if answer.status == 429}
        assert sentences == {"logs and consoles"}
    mute.close()


async def test_a_node_that_is_reached_and_then_silent_is_given_up(up: Up, api: Api, tmp_path: Path) -> None:
    own = credentials_of(up, tmp_path, "mute")
    mute = socket.create_server(("127.0.0.1", 0))
    await register(own, "mute", mute.getsockname()[1])
    await place(api, "mute", "mute")
    async with asyncio.timeout(60):
        reply = await api.request("GET", log_of("mute"))
    mute.close()
    assert reply.code == 500
    assert "node mute does not answer" in reply.message
