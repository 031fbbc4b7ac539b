"""Other nodes get in however many strangers stand before the door."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from herder.nodes.moving import door as door_module
from herder.nodes.moving.messages import Resumed
from tests.attacks.connections import many, noise, silent
from tests.unit.nodes.moving.test_links import RESUME, Agent, opened
from tests.unit.nodes.moving.test_tls_link import Cluster

FEW = 8


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(door_module, "MOST_STRANGERS", FEW)
    monkeypatch.setattr(door_module, "OF_ONE_NODE", 3)
    return Cluster(tmp_path)


def place_of(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("tls:").rpartition(":")
    return host, int(port)


async def test_a_node_is_heard_among_silent_strangers_who_are_bounded(cluster: Cluster) -> None:
    async with (
        opened(cluster.link("node-1")) as one,
        opened(cluster.link("node-2"), Agent()) as other,
        many(silent, place_of(other.address), 5 * FEW) as strangers,
        asyncio.timeout(20),
    ):
        assert await one.ask(other.address, "node-2", RESUME) == Resumed()
        # The first has left for one who came later.
        assert await asyncio.get_running_loop().sock_recv(strangers[0], 1) == b""


async def test_what_strangers_do_is_said_once_in_a_while(cluster: Cluster) -> None:
    with capture_logs() as said:
        async with opened(cluster.link("node-1")) as one, opened(cluster.link("node-2"), Agent()) as other:
            for _ in range(5):
                async with many(noise, place_of(other.address), 10):
                    assert await one.ask(other.address, "node-2", RESUME) == Resumed()
    assert len([line for line in said if "sent away" in line["event"] or "not let in" in line["event"]]) <= 2


async def test_a_node_that_opens_ever_more_loses_its_own_and_nobody_elses(cluster: Cluster) -> None:
    other = cluster.link("node-2")
    async with opened(other, Agent()), opened(cluster.link("node-3")) as third:
        assert await third.ask(other.address, "node-2", RESUME) == Resumed()
        greedy = [cluster.link("node-1") for _ in range(5)]
        async with asyncio.timeout(20):
            for link in greedy:
                assert await link.ask(other.address, "node-2", RESUME) == Resumed()
            assert other._door.nodes <= 4  # pyright: ignore[reportPrivateUsage]
            assert await third.ask(other.address, "node-2", RESUME) == Resumed()
        for link in greedy:
            await link.close()
