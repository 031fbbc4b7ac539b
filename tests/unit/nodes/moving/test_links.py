"""Agents reach each other, and nobody else is listened to."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herder.api.world import RealWorld
from herder.nodes.moving import streams
from herder.nodes.moving.link import Impostor, Link, Unreachable
from herder.nodes.moving.messages import Answer, Gone, Hello, Ready, Refusal, Request, Resume, Resumed
from herder.nodes.moving.switchboard import Switchboard
from herder.nodes.moving.tls import Identity, TlsLink
from herder.nodes.moving.unix import UnixLink
from herder.pki.authority import Authority

HELLO = Hello("m", "guest", {"memory": "1 GiB"})
RESUME = Resume("m", "guest", "token")
GROUP = ("system:nodes",)


class Agent:
    """Remembers what it was asked, and by whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[Request, str | None]] = []

    async def answer(self, request: Request, node: str | None) -> Answer:
        self.asked.append((request, node))
        return Ready("there", "token") if isinstance(request, Hello) else Resumed()


@asynccontextmanager
async def opened(link: Link, agent: Agent | None = None) -> AsyncGenerator[Link]:
    await link.open((agent or Agent()).answer)
    try:
        yield link
    finally:
        await link.close()


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority.make()

    def identity(self, name: str, groups: tuple[str, ...] = GROUP, authority: Authority | None = None) -> Identity:
        pair = (authority or self.authority).client(name, groups)
        files = [self.folder / f"{name.replace(':', '-')}.{kind}" for kind in ("crt", "key")]
        for file, data in zip(files, pair, strict=True):
            file.write_bytes(data)
        (self.folder / "ca.crt").write_bytes(self.authority.pair.certificate)
        return Identity(files[0], files[1], self.folder / "ca.crt")

    def link(self, node: str) -> TlsLink:
        return TlsLink("127.0.0.1", self.identity(f"system:node:{node}"), RealWorld())


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


async def test_agents_of_one_machine_talk_over_a_socket(tmp_path: Path) -> None:
    target = Agent()
    async with opened(UnixLink(tmp_path / "a" / "agent.socket")) as one, opened(UnixLink(tmp_path / "b.socket"), target) as other:
        assert await one.ask(other.address, "node-2", HELLO) == Ready("there", "token")
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        assert [request for request, _ in target.asked] == [HELLO, RESUME]


async def test_a_socket_may_be_deep_down_in_folders(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 6)
    async with opened(UnixLink(deep / "agent.socket")) as one:
        assert await one.ask(one.address, "node-1", RESUME) == Resumed()


async def test_nobody_there_is_unreachable_and_may_come_back(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    caller = UnixLink(tmp_path / "caller.socket")
    with pytest.raises(Unreachable):
        await caller.ask(f"unix:{path}", "node-2", RESUME)
    for _ in range(2):
        # The second time over what is left of the first connection.
        async with opened(UnixLink(path)):
            answered = await _until_answered(caller, f"unix:{path}")
            assert answered == Resumed()
    await caller.close()


async def _until_answered(link: Link, address: str) -> Answer:
    for _ in range(5):
        try:
            return await link.ask(address, "node-2", RESUME)
        except Unreachable:
            continue
    raise AssertionError("never answered")


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}", b"\x00\x00\x00\x05hello", b"\x00"], ids=str
)
async def test_garbage_ends_the_connection_and_nothing_else(tmp_path: Path, garbage: bytes) -> None:
    agent = Agent()
    async with opened(UnixLink(tmp_path / "agent.socket"), agent) as link:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "agent.socket"))
        writer.write(garbage)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert agent.asked == []
        assert await link.ask(link.address, "node-1", RESUME) == Resumed()


async def test_who_opens_a_connection_and_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "IDLE", 0.05)
    async with opened(UnixLink(tmp_path / "agent.socket")):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "agent.socket"))
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


async def test_an_agent_that_never_answers_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(silent, tmp_path / "agent.socket")
    caller = UnixLink(tmp_path / "caller.socket")
    with pytest.raises(Unreachable):
        await caller.ask(f"unix:{tmp_path / 'agent.socket'}", "node-2", RESUME)
    server.close()


async def test_agents_of_two_machines_know_each_other_by_their_certificates(cluster: Cluster) -> None:
    target = Agent()
    async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-2"), target) as other:
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        assert target.asked == [(RESUME, "node-1")]


async def test_another_node_that_answers_is_an_impostor(cluster: Cluster) -> None:
    other = Agent()
    async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-3"), other) as third:
        with pytest.raises(Impostor, match="who answers is not node node-2"):
            await one.ask(third.address, "node-2", RESUME)
        assert other.asked == []


async def test_a_node_of_another_cluster_is_not_spoken_with(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "strange").mkdir()
    stranger = Cluster(tmp_path / "strange").link("node-2")
    async with opened(cluster.link("node-1")) as one, opened(stranger) as other:
        with pytest.raises(Unreachable):
            await one.ask(other.address, "node-2", RESUME)
        with pytest.raises(Unreachable):
            await other.ask(one.address, "node-1", RESUME)


@pytest.mark.parametrize(("name", "groups"), [("jane", GROUP), ("system:node:node-2", ("people",)), ("system:admin", ())])
async def test_who_is_no_node_is_not_listened_to(cluster: Cluster, name: str, groups: tuple[str, ...]) -> None:
    target = Agent()
    somebody = TlsLink("127.0.0.1", cluster.identity(name, groups), RealWorld())
    async with opened(cluster.link("node-1"), target) as one:
        with pytest.raises(Unreachable):
            await somebody.ask(one.address, "node-1", RESUME)
        assert target.asked == []


async def test_who_shows_no_certificate_is_not_listened_to(cluster: Cluster) -> None:
    target = Agent()
    async with opened(cluster.link("node-1"), target) as one:
        host, _, port = one.address.removeprefix("tls:").rpartition(":")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            await streams.write_message(writer, b"{}")
            await reader.readexactly(4)
        assert target.asked == []


async def test_simulated_nodes_of_different_processes_cannot_reach_each_other() -> None:
    here, there = Switchboard("here"), Switchboard("there")
    async with opened(here.link("node-1")) as one, opened(there.link("node-2")) as other:
        refused = await one.ask(other.address, "node-2", HELLO)
        assert isinstance(refused, Refusal)
        assert "different processes" in refused.message
        assert isinstance(await one.ask(other.address, "node-2", RESUME), Gone)
