"""Agents of two machines know each other by certificates of their cluster. Others are sent away, and it is said who that was."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from herder.nodes.moving import streams
from herder.nodes.moving.link import Impostor, Unreachable
from herder.nodes.moving.messages import Resumed
from herder.nodes.moving.papers import Identity, Lacking
from herder.nodes.moving.tls import TlsLink
from herder.pki.authority import Authority, Pair
from herder.pki.files import write_private
from tests.engines.waiting import eventually
from tests.unit.nodes.moving.test_links import HELLO, RESUME, Agent, opened

GROUP = ("system:nodes",)


class Papers:
    """Files that can be written anew, or taken away."""

    def __init__(self, folder: Path, authority: bytes, pair: Pair) -> None:
        folder.mkdir(parents=True)
        self.identity = Identity(folder / "crt", folder / "key", folder / "ca")
        self.lacking = ""
        write_private(self.identity.authority, authority)
        self.renew(pair)

    def renew(self, pair: Pair) -> None:
        write_private(self.identity.key, pair.key)
        write_private(self.identity.certificate, pair.certificate)

    def client(self) -> Identity:
        return self.server()

    def server(self) -> Identity:
        if self.lacking:
            raise Lacking(self.lacking)
        return self.identity


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority.make()
        self._made = 0

    def pair(self, node: str) -> Pair:
        return self.authority.client(f"system:node:{node}", GROUP, hosts=(node,))

    def papers(self, pair: Pair) -> Papers:
        self._made += 1
        return Papers(self.folder / str(self._made), self.authority.pair.certificate, pair)

    def link(self, node: str) -> TlsLink:
        return link(self.papers(self.pair(node)))


def link(papers: Papers) -> TlsLink:
    return TlsLink(socket.create_server(("127.0.0.1", 0)), papers)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


async def test_agents_of_two_machines_know_each_other_by_their_certificates(cluster: Cluster) -> None:
    target = Agent()
    async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-2"), target) as other:
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        assert target.asked == [(RESUME, "node-1")]


async def test_another_node_that_answers_is_an_impostor(cluster: Cluster) -> None:
    other = Agent()
    async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-3"), other) as third:
        await one.ask(third.address, "node-3", HELLO)
        with pytest.raises(Impostor, match="who answers is not node node-2"):
            await one.ask(third.address, "node-2", RESUME)
        assert other.asked == [(HELLO, "node-1")]


async def test_a_node_of_another_cluster_is_not_spoken_with(cluster: Cluster, tmp_path: Path) -> None:
    stranger = Cluster(tmp_path / "strange").link("node-2")
    async with opened(cluster.link("node-1")) as one, opened(stranger) as other:
        with pytest.raises(Impostor, match="as node node-2 has no certificate of this cluster"):
            await one.ask(other.address, "node-2", RESUME)


async def test_who_comes_with_a_certificate_of_another_authority_is_sent_away_and_named(cluster: Cluster) -> None:
    """It trusts this cluster, so it is not the one that ends the conversation."""
    target = Agent()
    stranger = link(cluster.papers(Authority.make().client("system:node:node-2", GROUP, hosts=("node-2",))))
    with capture_logs() as logs:
        async with opened(cluster.link("node-1"), target) as one, opened(stranger):
            with pytest.raises(Unreachable):
                await stranger.ask(one.address, "node-1", RESUME)
            (said,) = await eventually(lambda: _said(logs))
    assert said["event"] == "somebody without a certificate of this cluster was sent away"
    assert said["peer"].startswith("127.0.0.1:")
    assert said["why"] == "unable to get local issuer certificate"
    assert target.asked == []


@pytest.mark.parametrize(("name", "groups"), [("jane", GROUP), ("system:node:node-2", ("people",)), ("system:admin", ())])
async def test_who_is_no_node_is_sent_away_and_named(cluster: Cluster, name: str, groups: tuple[str, ...]) -> None:
    target = Agent()
    somebody = link(cluster.papers(cluster.authority.client(name, groups)))
    with capture_logs() as logs:
        async with opened(cluster.link("node-1"), target) as one, opened(somebody):
            with pytest.raises(Unreachable):
                await somebody.ask(one.address, "node-1", RESUME)
            (said,) = await eventually(lambda: _said(logs))
    assert said["event"] == "somebody who is no node was sent away"
    assert f"CN={name}" in said["shown"]
    assert target.asked == []


async def test_a_certificate_for_servers_alone_lets_nobody_in(cluster: Cluster) -> None:
    target = Agent()
    somebody = link(cluster.papers(cluster.authority.server(("node-2",))))
    async with opened(cluster.link("node-1"), target) as one, opened(somebody):
        with pytest.raises(Unreachable):
            await somebody.ask(one.address, "node-1", RESUME)
    assert target.asked == []


async def test_a_certificate_for_clients_alone_answers_nobody(cluster: Cluster) -> None:
    """Otherwise whoever may ask for one for people could wait for guests."""
    other = link(cluster.papers(cluster.authority.client("system:node:node-2", GROUP)))
    async with opened(cluster.link("node-1")) as one, opened(other):
        with pytest.raises(Impostor, match="has no certificate of this cluster: unsuitable certificate purpose"):
            await one.ask(other.address, "node-2", RESUME)


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


async def test_who_says_something_else_does_not_keep_others_out(cluster: Cluster) -> None:
    async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-2")) as other:
        host, _, port = other.address.removeprefix("tls:").rpartition(":")
        silent = await asyncio.open_connection(host, int(port))
        _, garbling = await asyncio.open_connection(host, int(port))
        garbling.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        for writer in (silent[1], garbling):
            writer.close()


async def test_renewed_certificates_are_shown_without_a_restart(cluster: Cluster) -> None:
    """Both sides had one that is of no use any more."""
    one, other = (cluster.papers(Authority.make().client(f"system:node:{node}", GROUP, hosts=(node,))) for node in ("n1", "n2"))
    async with opened(link(one)) as here, opened(link(other)) as there:
        with pytest.raises(Unreachable):
            await here.ask(there.address, "n2", RESUME)
        one.renew(cluster.pair("n1"))
        other.renew(cluster.pair("n2"))
        assert await here.ask(there.address, "n2", RESUME) == Resumed()


async def test_a_node_without_a_certificate_says_so_until_it_has_one(cluster: Cluster) -> None:
    papers = cluster.papers(cluster.pair("node-2"))
    papers.lacking = "kubectl certificate approve it"
    async with opened(cluster.link("node-1")) as one, opened(link(papers)) as other:
        assert other.closed == "kubectl certificate approve it"
        with pytest.raises(Unreachable, match="kubectl certificate approve it"):
            await other.ask(one.address, "node-1", RESUME)
        with pytest.raises(Unreachable):
            await one.ask(other.address, "node-2", RESUME)
        papers.lacking = ""
        assert other.closed == ""
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()


async def _said(logs: list[EventDict]) -> list[EventDict]:
    return [line for line in logs if "sent away" in line["event"]]
