"""Moves over TCP, by QEMU's own TLS with certificates of the cluster: nobody else gets a guest, or gives one."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import RunAs, Wire, admitting
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.wire import KeyPair, parse
from herder.pki.authority import Authority, Pair
from tests.attacks.connections import many, silent
from tests.e2e.qemu.moves import LOAD, SLOW, assert_one_guest_said, check_memory, copied, is_moved, prepared, resumed
from tests.e2e.qemu.node import Node
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")


class Site:
    """Nodes with certificates."""

    def __init__(self, folder: Path, facts: Facts, run_as: RunAs | None, guest: Path) -> None:
        self.folder = folder
        self.guest = guest
        self.authority = Authority.make()
        self._about = facts, run_as, guest
        self._nodes: list[Node] = []

    async def node(self, place: str, authority: Authority | None = None, **changes: Any) -> Node:
        node = Node(self.folder / place, *self._about, msgspec.structs.replace(self.wire(place, authority), **changes))
        self._nodes.append(node)
        await node.open()
        return node

    def wire(self, name: str, authority: Authority | None = None) -> Wire:
        """As the node of that name has it; one of another authority trusts this one all the same."""
        signed_by = authority or self.authority
        trusted = {one.pair.certificate: None for one in (self.authority, signed_by)}
        host = f"{name}.nodes.example"
        return Wire(
            address="127.0.0.1",
            name=host,
            ca=self._file("ca", b"".join(trusted)),
            client=self.pair(signed_by.client(f"system:node:{name}", ("system:nodes",))),
            server=self.pair(signed_by.server((host,))),
        )

    def pair(self, pair: Pair) -> KeyPair:
        return KeyPair(self._file("certificate", pair.certificate), self._file("key", pair.key))

    def _file(self, name: str, content: bytes) -> Path:
        """As an agent has them: its own alone."""
        place = self.folder / "pki"
        place.mkdir(mode=0o700, exist_ok=True)
        path = place / f"{name}-{len(list(place.iterdir()))}"
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path

    async def end(self) -> None:
        for node in self._nodes:
            await node.end()


@pytest.fixture
async def site(tmp_path: Path, facts: Facts, run_as: RunAs | None, guest: Path) -> AsyncIterator[Site]:
    one = Site(tmp_path, facts, run_as, guest)
    yield one
    await one.end()


async def _started(node: Node) -> str:
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    return source


async def test_a_busy_guest_moves_over_tcp_without_missing_a_tick_or_a_page(site: Site) -> None:
    here, there = await site.node("a"), await site.node("b")
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    assert address.startswith("tcp:127.0.0.1:")
    await here.runtime.migrate_out(source, "m", address, PolicySettings())
    await here.becomes(source, "HandedOver")
    await resumed(there, target)
    await there.ticked(target, 10)
    await check_memory(there, target)
    await assert_one_guest_said((here, source), (there, target))


async def test_no_memory_is_readable_on_the_wire(site: Site) -> None:
    """Somebody in between sees TLS and nothing of what the guest has in its memory."""
    here, there = await site.node("a"), await site.node("b")
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    tap = Tap(parse(address).port)
    through = msgspec.structs.replace(parse(address), port=await tap.open())
    await here.runtime.migrate_out(source, "m", str(through), PolicySettings())
    await here.becomes(source, "HandedOver")
    await resumed(there, target)
    heard = bytes(tap.heard)
    await tap.close()
    assert len(heard) > 16 << 20
    assert heard[36:38] == b"\x16\x03", "a token, and then a TLS handshake"
    # Four letters may come up by chance among millions; a stream that can be read begins with these.
    assert b"QEVM" not in heard[:4096] and b"complaint:" not in heard and b"tick " not in heard


@pytest.mark.parametrize("side", ["source", "target"])
async def test_a_certificate_of_another_authority_moves_nothing(site: Site, side: str) -> None:
    here = await site.node("a", authority=Authority.make() if side == "source" else None)
    there = await site.node("b", authority=Authority.make() if side == "target" else None)
    await _refused(site, here, there)


async def test_a_certificate_that_is_none_of_its_authority_is_said(site: Site) -> None:
    here, there = await site.node("a", client=site.wire("a", Authority.make()).client), await site.node("b")
    source = await _started(here)
    _, address = await prepared(here, there, site.guest, source)
    with pytest.raises(Refused, match=r"the node's certificate cannot be used: .* failed validation"):
        await here.runtime.migrate_out(source, "m", address, PolicySettings())
    assert here.status(source).state == "Running"


async def test_a_target_that_is_another_than_it_says_gets_nothing(site: Site) -> None:
    here, there = await site.node("a"), await site.node("b", name="c.nodes.example")
    await _refused(site, here, there)


async def test_a_user_of_the_cluster_is_no_node(site: Site) -> None:
    """The same authority signs for both."""
    here = await site.node("a", client=site.pair(site.authority.client("jane", ("developers",))))
    there = await site.node("b")
    await _refused(site, here, there)


async def _refused(site: Site, here: Node, there: Node) -> None:
    """The source goes on, and the target never had anything."""
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    await here.runtime.migrate_out(source, "m", address, PolicySettings())
    await is_moved(here, source, "Failed")
    assert here.moved(source).why
    assert not there.status(target).has_memory
    await here.ticked(source, len(await here.ticks(source)) + 3)
    assert here.status(source).state == "Running"


async def test_strangers_at_the_door_do_not_spoil_a_target(site: Site) -> None:
    here, there = await site.node("a"), await site.node("b")
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    place = parse(address)
    with capture_logs() as logs:
        for words in (b"", b"GET / HTTP/1.1\r\nHost: guess-what\r\n\r\n", b"0" * len(place.token)):
            with socket.create_connection((place.host, place.port)) as stranger:
                stranger.sendall(words)

        async def named() -> bool:
            return [line["event"] for line in logs].count("somebody who was not sent by a node's agent was sent away") == 1

        await eventually(named)
    await here.runtime.migrate_out(source, "m", address, PolicySettings())
    await here.becomes(source, "HandedOver")
    await resumed(there, target)
    await there.ticked(target, 3)


async def test_strangers_who_say_nothing_delay_no_guest(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # None of them is given up before the guest has come.
    monkeypatch.setattr(admitting, "PATIENCE", 3600.0)
    here, there = await site.node("a"), await site.node("b")
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    place = parse(address)
    async with many(silent, (place.host, place.port), 3):
        await here.runtime.migrate_out(source, "m", address, PolicySettings())
        await here.becomes(source, "HandedOver")
        await resumed(there, target)
        await there.ticked(target, 3)


async def test_without_certificates_nothing_goes_over_the_network(site: Site, node: Node) -> None:
    there = await site.node("b")
    source = await _started(node)
    _, address = await prepared(node, there, site.guest, source)
    with pytest.raises(Refused, match="no certificate to send a guest over the network"):
        await node.runtime.migrate_out(source, "m", address, PolicySettings())
    assert parse(address).token not in str(node.runtime.moved(source))


async def test_keys_are_readable_for_a_moment_only(site: Site, run_as: RunAs | None) -> None:
    here, there = await site.node("a"), await site.node("b")
    source = await _started(here)
    target, address = await prepared(here, there, site.guest, source)
    await here.runtime.migrate_out(source, "m", address, SLOW)
    await copied(here, source)
    for node, guest in ((here, source), (there, target)):
        folder = node.folder / "guests" / guest
        assert not [path for path in folder.rglob("*") if path.suffix == ".pem"]
        open_files = [os.readlink(path) for path in Path(f"/proc/{node.pid(guest)}/fd").iterdir()]
        assert not [name for name in open_files if name.endswith("tls") or ".pem" in name]
    await here.runtime.cancel(source)


class Tap:
    """Passes everything on, both ways, and remembers what the source said."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.heard = bytearray()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._to)
        self._tasks.add(asyncio.create_task(self._pass(back, writer, bytearray())))
        await self._pass(reader, forth, self.heard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: bytearray) -> None:
        while data := await reader.read(1 << 16):
            heard += data
            writer.write(data)
            await writer.drain()
        writer.close()

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
