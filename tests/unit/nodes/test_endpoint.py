"""Who may look into a node's guests, and what they see: over real TLS, with simulated guests."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.nodes.endpoint import Endpoint, Named, server_tls
from herder.nodes.guests import Guests, NoVolumes
from herder.nodes.moving import MemoryNotes, Mover, Switchboard
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.nodes.work import Work
from herder.pki.authority import Authority, Pair

CALLER = "kube-apiserver-kubelet-client"
LOG = "/containerLogs/shop/web/compute"
NOTHING_RUNS = "simulated: no container runs in it"
ATTACH = "/attach/shop/web/compute?input=1&output=1&tty=1"


def pod(name: str, uid: str) -> Pod:
    guest = {"instance": {"namespace": "shop", "name": name, "uid": uid}, "spec": {"domain": {}}, "simulated": {"boot": "0"}}
    document = {
        "metadata": {"name": name, "namespace": "shop", "uid": uid, "annotations": {labels.GUEST: json.dumps(guest)}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "compute", "image": "herder.dev/guest"}]},
    }
    return msgspec.convert(document, Pod)


PLAIN = {
    "metadata": {"name": "plain", "namespace": "shop", "uid": "plain-uid"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "compute", "image": "app"}]},
}


class Node:
    """One guest that runs, one that does not yet, and a plain pod."""

    name = "node-1"

    def __init__(self) -> None:
        runtime = SimulatedRuntime("node-1", RealWorld())
        mover = Mover("node-1", runtime, MemoryNotes(), Switchboard().link("node-1"), RealWorld())
        self.guests = Guests(runtime, NoVolumes(), mover)
        self.plain = PlainPods(RealWorld())
        self.pods: dict[str, tuple[Pod, Work | None]] = {
            "web": (pod("web", "web-uid"), self.guests),
            "later": (pod("later", "later-uid"), self.guests),
            "plain": (msgspec.convert(PLAIN, Pod), self.plain),
            "refused": (msgspec.convert({**PLAIN, "metadata": {**PLAIN["metadata"], "name": "refused"}}, Pod), None),
        }

    def find(self, namespace: str, name: str) -> tuple[Pod, Work | None] | None:
        return self.pods.get(name) if namespace == "shop" else None

    def nodes(self) -> tuple[str, ...]:
        return (self.name,)

    def pods_on(self, node: str) -> list[tuple[Pod, Work]]:
        return [(pod, work) for pod, work in self.pods.values() if work is not None and node == self.name]

    async def says(self, *lines: str) -> None:
        console = await self.guests.console("web-uid")
        await console.write("".join(f"{line}\n" for line in lines).encode())


class Rig:
    def __init__(self, folder: Path, authority: Authority, port: int, node: Node) -> None:
        self.folder, self.authority, self.node = folder, authority, node
        self.base = f"https://127.0.0.1:{port}"

    def tls(self, pair: Pair | None) -> ssl.SSLContext:
        (self.folder / "ca.crt").write_bytes(self.authority.pair.certificate)
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        if pair is not None:
            for name, data in zip(("shown.crt", "shown.key"), pair, strict=True):
                (self.folder / name).write_bytes(data)
            context.load_cert_chain(self.folder / "shown.crt", self.folder / "shown.key")
        return context

    @asynccontextmanager
    async def session(self, pair: Pair | None) -> AsyncGenerator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self.tls(pair))
        async with aiohttp.ClientSession(self.base, connector=connector) as session:
            yield session

    @asynccontextmanager
    async def as_api_server(self) -> AsyncGenerator[aiohttp.ClientSession]:
        async with self.session(self.authority.client(CALLER, ())) as session:
            yield session

    async def get(self, path: str) -> tuple[int, str]:
        async with self.as_api_server() as session, session.get(path) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    authority, node = Authority.make(), Node()
    files = {"ca.pem": authority.pair.certificate, **dict(zip(("s.crt", "s.key"), authority.server(("127.0.0.1",)), strict=True))}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    endpoint = Endpoint(server_tls(tmp_path / "s.crt", tmp_path / "s.key", tmp_path / "ca.pem"), Named((CALLER,)), RealWorld())
    endpoint.add(node)
    await endpoint.start(listen_on("the test", "127.0.0.1", 0))
    await node.guests.start(node.pods["web"][0])
    await node.plain.start(node.pods["plain"][0])
    yield Rig(tmp_path, authority, endpoint.port, node)
    await endpoint.stop()


# Who.


async def test_the_api_server_gets_in(rig: Rig) -> None:
    assert await rig.get("/healthz") == (200, "ok")


@pytest.mark.parametrize("path", ["/healthz", LOG, ATTACH])
@pytest.mark.parametrize("name", ["herder-admin", "system:node:node-1", ""])
async def test_others_with_a_certificate_of_the_same_authority_do_not(rig: Rig, name: str, path: str) -> None:
    async with rig.session(rig.authority.client(name or "x", ("system:masters",))) as session, session.get(path) as answer:
        assert answer.status == 403
        assert "is not the API server" in await answer.text()


@pytest.mark.parametrize("shown", ["nothing", "of another authority", "of a server", "that has ended"])
async def test_whoever_shows_no_good_certificate_is_not_heard_at_all(rig: Rig, shown: str) -> None:
    pairs = {
        "nothing": None,
        "of another authority": Authority.make().client(CALLER, ()),
        "of a server": rig.authority.server((CALLER,)),
        "that has ended": rig.authority.client(CALLER, (), days=0),
    }
    async with rig.session(pairs[shown]) as session:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await session.get("/healthz")


# Logs.


async def test_a_log_is_given_whole_or_by_its_last_lines_or_first_bytes(rig: Rig) -> None:
    await rig.node.says("one", "two", "three")
    whole = "boot web-uid\r\nyou said: one\r\nyou said: two\r\nyou said: three\r\n"
    assert await rig.get(LOG) == (200, whole)
    assert await rig.get(f"{LOG}?tailLines=2") == (200, "you said: two\r\nyou said: three\r\n")
    assert await rig.get(f"{LOG}?tailLines=0") == (200, "")
    assert await rig.get(f"{LOG}?tailLines=99") == (200, whole)
    assert await rig.get(f"{LOG}?limitBytes=4") == (200, "boot")
    assert await rig.get(f"{LOG}?tailLines=1&limitBytes=8") == (200, "you said")


@pytest.mark.parametrize("tail", [None, 1])
async def test_a_log_that_is_followed_goes_on_and_ends_with_the_guest(rig: Rig, tail: int | None) -> None:
    await rig.node.says("before")
    query = f"?follow=true{f'&tailLines={tail}' if tail else ''}"
    async with rig.as_api_server() as session, session.get(LOG + query) as answer:
        first = [await answer.content.readline() for _ in range(1 if tail else 2)]
        assert first[-1] == b"you said: before\r\n"
        await rig.node.says("after")
        assert await answer.content.readline() == b"you said: after\r\n"
        await rig.node.guests.shut_down("web-uid")
        assert await answer.content.read() == b"powerdown\r\n"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("previous=true", "previous: a guest runs once in its pod"),
        ("sinceSeconds=5", "sinceSeconds: a guest's log has no times"),
        ("sinceTime=2026-01-01T00:00:00Z", "sinceTime: a guest's log has no times"),
        ("timestamps=true", "timestamps: a guest's log has no times"),
        ("tailLines=-1", "tailLines: '-1': should be a whole number of at least 0"),
        ("tailLines=many", "tailLines: 'many': should be a whole number of at least 0"),
        ("limitBytes=0", "limitBytes: '0': should be a whole number of at least 1"),
    ],
)
async def test_what_cannot_be_answered_is_refused_with_a_sentence(rig: Rig, query: str, said: str) -> None:
    status, text = await rig.get(f"{LOG}?{query}")
    assert status == 400
    assert text.startswith(said)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/containerLogs/shop/nobody/compute", 404, "no node of this process runs a pod shop/nobody"),
        ("/containerLogs/other/web/compute", 404, "no node of this process runs a pod other/web"),
        ("/containerLogs/shop/web/sidecar", 404, "pod shop/web has no container sidecar"),
        ("/containerLogs/shop/later/compute", 400, 'container "compute" in pod "later" is waiting to start'),
        ("/containerLogs/shop/plain/compute", 400, f"pod shop/plain is {NOTHING_RUNS}, so it writes no log"),
        ("/exec/shop/plain/compute?command=ls", 400, f"pod shop/plain is {NOTHING_RUNS}, so it cannot run a command"),
        ("/portForward/shop/plain", 400, f"pod shop/plain is {NOTHING_RUNS}, so nothing listens on its ports"),
        ("/exec/shop/web/compute?command=ls", 400, "pod shop/web runs a virtual machine, and no node starts programs"),
        ("/portForward/shop/web", 400, "pod shop/web runs a virtual machine, and nodes pass on no connections"),
        ("/containerLogs/shop/refused/compute", 400, "pod shop/refused does not run: its node runs virtual machines"),
        ("/exec/shop/nobody/compute", 404, "no node of this process runs a pod shop/nobody"),
        (ATTACH, 400, "a console is only given over a WebSocket"),
    ],
)
async def test_what_is_not_there_is_named(rig: Rig, path: str, status: int, said: str) -> None:
    found, text = await rig.get(path)
    assert found == status
    assert text.startswith(said)


# Consoles.


@asynccontextmanager
async def console(rig: Rig, path: str = ATTACH, protocol: str = "v4.channel.k8s.io") -> AsyncGenerator[Any]:
    async with rig.as_api_server() as session, session.ws_connect(path, protocols=(protocol,)) as socket:
        assert socket.protocol == protocol
        yield socket


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v5.channel.k8s.io"])
async def test_a_console_shows_what_the_guest_says_and_types_what_it_is_told(rig: Rig, protocol: str) -> None:
    async with console(rig, protocol=protocol) as socket:
        assert await socket.receive_bytes() == b"\x01"
        # A size and the end of a stream are no letters.
        for message in (b"\x04{}", b"\xff\x00", b"\x00hel", b"\x00lo\r"):
            await socket.send_bytes(message)
        assert await socket.receive_bytes() == b"\x01you said: hello\r\n"
        await rig.node.guests.shut_down("web-uid")
        assert await socket.receive_bytes() == b"\x01powerdown\r\n"
        assert json.loads((await socket.receive_bytes())[1:])["status"] == "Success"
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


async def test_who_asked_only_to_see_types_nothing(rig: Rig) -> None:
    async with console(rig, "/attach/shop/web/compute?output=1") as socket:
        assert await socket.receive_bytes() == b"\x01"
        await socket.send_bytes(b"\x00hello\r")
        await rig.node.says("from elsewhere")
        assert await socket.receive_bytes() == b"\x01you said: from elsewhere\r\n"


@pytest.mark.parametrize(("name", "said"), [("later", "is waiting to start"), ("plain", "so there is nothing to attach to")])
async def test_a_console_that_cannot_be_says_why(rig: Rig, name: str, said: str) -> None:
    async with console(rig, f"/attach/shop/{name}/compute?input=1") as socket:
        message = await socket.receive_bytes()
        assert message[:1] == b"\x03"
        status = json.loads(message[1:])
        assert status["status"] == "Failure"
        assert said in status["message"]


async def test_a_client_that_leaves_disturbs_nobody(rig: Rig) -> None:
    async with console(rig) as stays:
        async with console(rig) as leaves:
            await leaves.receive_bytes()
        await stays.receive_bytes()
        await stays.send_bytes(b"\x00still here\r")
        assert await asyncio.wait_for(stays.receive_bytes(), 20) == b"\x01you said: still here\r\n"
