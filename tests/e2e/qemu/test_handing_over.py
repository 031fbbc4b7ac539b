"""A real guest handed over by the agents' own protocol: unix sockets, notes on disk, and nobody who tells either side to go on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import MigrationOrder
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.nodes.moving import DiskNotes, Mover
from herder.nodes.moving.unix import UnixLink
from tests.e2e.guest.machine import PATIENCE
from tests.e2e.qemu.moves import LOAD, assert_one_guest_said
from tests.e2e.qemu.node import Node, order
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
ORDER = MigrationOrder(migration="m", settings=PolicySettings())


def pod(uid: str, told: MigrationOrder) -> Pod:
    annotations = {labels.MIGRATION: msgspec.json.encode(told).decode()}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "default", "uid": uid, "annotations": annotations}}, Pod)


@asynccontextmanager
async def mover(node: Node, name: str) -> AsyncGenerator[Mover]:
    """The part of an agent that moves guests, on a runtime that tells it what happens."""
    made = Mover(name, node.runtime, DiskNotes(node.folder / "moves"), UnixLink(node.folder / "agent.socket"), RealWorld())
    await node.runtime.close()
    await node.runtime.open(made.told)
    await made.open(lambda guest: None)
    try:
        yield made
    finally:
        await made.close()


async def test_a_guest_goes_on_at_its_target_when_its_source_has_noted_that_it_gave_it_away(
    node: Node, other: Node, guest: Path
) -> None:
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    incoming = order(guest, LOAD, incoming=node.status(source).started)
    async with mover(node, "n1") as here, mover(other, "n2") as there:
        await there.prepare(pod(incoming.guest, ORDER), incoming)
        address = there.moving(incoming.guest).report
        assert address is not None
        wanted = msgspec.structs.replace(ORDER, target_pod=incoming.guest, target_node="n2", address=address.address)
        await here.look(pod(source, wanted))

        async def over() -> bool:
            told, heard = here.moving(source).report, there.moving(incoming.guest).report
            assert told is not None and not told.failed, told
            return told.completed and heard is not None and heard.taken_over

        await eventually(over, PATIENCE)
        await other.ticked(incoming.guest, 10)
        assert not here.moving(source).owed
        await assert_one_guest_said((node, source), (other, incoming.guest))
        await here.forget(source)
    assert list((node.folder / "moves").iterdir()) == []
    assert [file.name for file in (other.folder / "moves").iterdir()] == [f"{incoming.guest}.coming"]
