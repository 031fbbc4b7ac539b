"""Moves between two nodes through the runtimes alone: no tick and no page may be missing, and never do two copies run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from herder.api import reasons
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Refused
from tests.e2e.qemu.moves import LOAD, SLOW, assert_one_guest_said, check_memory, copied, is_moved, prepared, resumed
from tests.e2e.qemu.node import Node, order

pytestmark = pytest.mark.usefixtures("migrations")


async def test_a_busy_guest_moves_without_missing_a_tick_or_a_page(node: Node, other: Node, guest: Path) -> None:
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    target, address = await prepared(node, other, guest, source)
    assert other.status(target).state == "Incoming"
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    assert other.status(target).state == "Incoming", "it must not go on before it is told to"
    assert not list(other.folder.rglob("migration.socket")), "where nobody listens any more is no socket"
    assert await other.text(target) == ""
    await resumed(other, target)
    await other.ticked(target, 10)
    await check_memory(other, target)
    await assert_one_guest_said((node, source), (other, target))
    assert "boot" not in await other.text(target)
    moved = node.moved(source)
    assert (moved.migration, moved.state, moved.why) == ("migration-1", "Completed", "") and moved.began_at > 0
    assert moved.progress is not None and moved.progress.percent == 100 and moved.progress.downtime_ms is not None


async def test_ten_hops_miss_neither_a_tick_nor_a_page(node: Node, other: Node, guest: Path) -> None:
    """There and back again, each time to a new QEMU, under load; the agents are restarted on the way."""
    places = [(node, await node.start(LOAD))]
    for hop in range(1, 11):
        (here, source), there = places[-1], (node, other)[hop % 2]
        await here.ticked(source, 10)
        target, address = await prepared(here, there, guest, source, migration=f"hop-{hop}")
        await here.runtime.migrate_out(source, f"hop-{hop}", address, PolicySettings())
        await is_moved(here, source, "Completed")
        await resumed(there, target)
        places.append((there, target))
        if hop % 3 == 0:
            await there.reopen()
    last, at = places[-1]
    await last.ticked(at, 10)
    await check_memory(last, at)
    await assert_one_guest_said(*places)
    for here, source in places[:-1]:
        assert here.status(source).state == "HandedOver"


async def test_the_target_is_what_the_source_was_started_as(node: Node, other: Node, guest: Path) -> None:
    """Whatever the words in its definition would mean on the target."""
    source = await node.start(LOAD, domain={"cpu": {"model": "Nehalem", "cores": 2}, "machine": {"type": "pc"}}, memory="80Mi")
    target, address = await prepared(node, other, guest, source)
    assert other.status(target).started == node.status(source).started
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, target)
    await other.ticked(target, 3)


async def test_a_cancelled_move_leaves_the_guest_where_it_was(node: Node, other: Node, guest: Path) -> None:
    source = await node.start(LOAD)
    await node.ticked(source, 10)  # else there is little to copy
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, SLOW)
    await copied(node, source)
    await node.runtime.cancel(source)
    ticks = len(await node.ticks(source))
    await node.ticked(source, ticks + 5)
    assert (node.status(source).state, node.moved(source).state) == ("Running", "Cancelled")
    assert (await other.becomes(target, "Failed")).reason == reasons.TARGET_POD_FAILED
    await other.runtime.remove(target)
    again, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-2", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, again)
    await other.ticked(again, 3)


async def test_its_bandwidth_and_its_progress_are_told(node: Node, other: Node, guest: Path) -> None:
    source = await node.start(LOAD)
    await node.ticked(source, 10)  # else there is little to copy
    _, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, SLOW)
    seen = await copied(node, source, 2 << 20)
    assert seen.mode == "PreCopy"
    assert seen.total_bytes and seen.total_bytes >= 64 << 20
    assert seen.bytes_per_second is not None and seen.bytes_per_second <= 8 << 20
    assert seen.remaining_bytes and seen.percent is not None and seen.percent < 100
    await node.runtime.cancel(source)


async def test_a_lost_target_leaves_the_guest_where_it_was(node: Node, other: Node, guest: Path) -> None:
    source = await node.start(LOAD)
    await node.ticked(source, 10)  # else there is little to copy
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, SLOW)
    await copied(node, source)
    await other.runtime.remove(target)
    await is_moved(node, source, "Failed")
    assert node.moved(source).why
    await node.ticked(source, len(await node.ticks(source)) + 3)
    assert node.status(source).state == "Running"


async def test_nobody_at_the_address_is_said(node: Node) -> None:
    source = await node.start()
    with pytest.raises(Refused, match="nobody waits for a guest at unix:/nowhere"):
        await node.runtime.migrate_out(source, "migration-1", "unix:/nowhere", PolicySettings())
    assert node.status(source).state == "Running"


async def test_what_was_handed_over_never_runs_again(node: Node, other: Node, guest: Path) -> None:
    """Not even when the agent was restarted in between."""
    source = await node.start(LOAD)
    _, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await node.reopen()
    assert node.status(source).state == "HandedOver"
    said = await node.text(source)
    await node.runtime.resume(source)
    assert node.status(source).state == "HandedOver"
    assert await node.text(source) == said


async def test_a_target_survives_its_agent_and_is_resumed_by_the_next(node: Node, other: Node, guest: Path) -> None:
    source = await node.start(LOAD)
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await other.reopen()
    assert other.status(target).state == "Incoming"
    await resumed(other, target)
    await other.ticked(target, 3)
    await assert_one_guest_said((node, source), (other, target))


async def test_a_guest_of_another_kind_is_refused(node: Node, guest: Path) -> None:
    started = node.status(await node.start()).started
    assert started is not None
    for change, why in (
        ({"machine_type": "pc-q35-99.0"}, "machine type pc-q35-99.0 is not known"),
        ({"accelerator": "other"}, "was started with accelerator other"),
        ({"runtime": "simulated"}, "was started by the runtime simulated"),
    ):
        with pytest.raises(Refused, match=why):
            await node.runtime.prepare_incoming(order(guest, incoming=msgspec.structs.replace(started, **change)), "m")
