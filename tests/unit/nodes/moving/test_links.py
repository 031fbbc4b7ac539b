"""Agents reach each other, and nobody else is listened to."""

import asyncio
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herder.nodes.moving import streams
from herder.nodes.moving.link import Link, Unreachable
from herder.nodes.moving.messages import Answer, Gone, Hello, Ready, Refusal, Request, Resume, Resumed
from herder.nodes.moving.switchboard import Switchboard
from herder.nodes.moving.unix import UnixLink
from tests.engines.waiting import eventually

HELLO = Hello("m", "guest", {"memory": "1 GiB"})
RESUME = Resume("m", "guest", "token")


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


async def test_agents_of_one_machine_talk_over_a_socket(tmp_path: Path) -> None:
    target = Agent()
    mine, theirs = (UnixLink(tmp_path / name / "agent.socket") for name in ("node-1", "node-2"))
    async with opened(mine) as one, opened(theirs, target) as other:
        assert await one.ask(other.address, "node-2", HELLO) == Ready("there", "token")
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        assert [request for request, _ in target.asked] == [HELLO, RESUME]
        folder, place = (tmp_path / "node-2"), (tmp_path / "node-2" / "agent.socket")
        assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, place)] == [0o700, 0o600], "nobody else can come in"
        with pytest.raises(Unreachable, match="only those of its own machine"):
            await one.ask(str(place), "node-2", HELLO)
    assert not place.exists()


async def test_a_link_that_is_closed_hangs_up_on_both_sides(tmp_path: Path) -> None:
    mine, theirs = (UnixLink(tmp_path / name / "agent.socket") for name in ("node-1", "node-2"))
    talks = theirs._server._tasks  # pyright: ignore[reportPrivateUsage]
    async with opened(theirs):
        async with opened(mine):
            assert await mine.ask(theirs.address, "node-2", RESUME) == Resumed()
            assert len(talks) == 1

        async def count(wanted: int) -> bool:
            return len(talks) == wanted

        await eventually(lambda: count(0))
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "node-2" / "agent.socket"))
        await eventually(lambda: count(1))
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()


@pytest.mark.parametrize(
    "place", ["docker.sock", "node-1/guests/agent.socket", "node-2/qmp.socket", "node-1/../../agent.socket", "../agent.socket"]
)
async def test_no_socket_but_that_of_an_agent_is_ever_opened(tmp_path: Path, place: str) -> None:
    """Where it is to go stands in an annotation of a pod."""
    came = asyncio.Event()

    async def somebody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        writer.close()

    path = tmp_path / "nodes" / place
    (tmp_path / "nodes" / "node-1").mkdir(parents=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    server = await asyncio.start_unix_server(somebody, path)
    async with opened(UnixLink(tmp_path / "nodes" / "node-1" / "agent.socket")) as link:
        with pytest.raises(Unreachable, match="only those of its own machine"):
            await link.ask(f"unix:{path}", "node-2", HELLO)
    assert not came.is_set()
    server.close()


async def test_a_socket_may_be_deep_down_in_folders(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 6)
    async with opened(UnixLink(deep / "agent.socket")) as one:
        assert await one.ask(one.address, "node-1", RESUME) == Resumed()


async def test_nobody_there_is_unreachable_and_may_come_back(tmp_path: Path) -> None:
    path = tmp_path / "node-2" / "agent.socket"
    caller = UnixLink(tmp_path / "node-1" / "agent.socket")
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

    path = tmp_path / "node-2" / "agent.socket"
    path.parent.mkdir()
    server = await asyncio.start_unix_server(silent, path)
    caller = UnixLink(tmp_path / "node-1" / "agent.socket")
    with pytest.raises(Unreachable, match="TimeoutError"):
        await caller.ask(f"unix:{path}", "node-2", RESUME)
    server.close()


async def test_simulated_nodes_of_different_processes_cannot_reach_each_other() -> None:
    here, there = Switchboard("here"), Switchboard("there")
    async with opened(here.link("node-1")) as one, opened(there.link("node-2")) as other:
        refused = await one.ask(other.address, "node-2", HELLO)
        assert isinstance(refused, Refusal)
        assert "different processes" in refused.message
        assert isinstance(await one.ask(other.address, "node-2", RESUME), Gone)


async def test_connections_to_agents_that_nobody_asks_any_more_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(streams, "_now", lambda: clock[0])
    caller = streams.Caller()
    for number in range(5):
        async with opened(UnixLink(tmp_path / f"{number}.socket")) as other:
            path = other.address.removeprefix("unix:")
            assert await caller.ask(other.address, lambda path=path: asyncio.open_unix_connection(path), RESUME) == Resumed()
        clock[0] += streams.FRESH
    kept = (caller._open, caller._locks, caller._asking)  # pyright: ignore[reportPrivateUsage]
    assert [len(one) for one in kept] == [1, 1, 1]
    caller.close()
