"""A move goes on without its agents, and the next ones know how it went."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from herder.api.kinds.migration_state import PolicySettings
from tests.e2e.qemu.moves import LOAD, SLOW, assert_one_guest_said, copied, is_moved, prepared, resumed
from tests.e2e.qemu.node import Node

pytestmark = pytest.mark.usefixtures("migrations")


@pytest.fixture
async def source(node: Node) -> str:
    guest = await node.start(LOAD)
    await node.ticked(guest, 10)  # else there is little to copy
    return guest


async def test_a_move_goes_on_while_its_agents_are_restarted(node: Node, other: Node, guest: Path, source: str) -> None:
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, PolicySettings(bandwidth_per_migration="32Mi", max_downtime_ms=2000))
    began = node.moved(source).began_at
    await node.reopen()
    await other.reopen()
    await node.becomes(source, "HandedOver")
    moved = node.moved(source)
    assert (moved.migration, moved.state, moved.began_at) == ("m", "Completed", began)
    await resumed(other, target)
    await other.ticked(target, 10)
    await assert_one_guest_said((node, source), (other, target))


async def test_a_move_that_ended_without_its_agent_is_known_to_the_next(node: Node, other: Node, guest: Path, source: str) -> None:
    """QEMU would let it run again if it was asked to: nobody may."""
    target, address = await prepared(node, other, guest, source)
    fast = PolicySettings(bandwidth_per_migration="32Mi", max_downtime_ms=2000)
    await node.runtime.migrate_out(source, "m", address, fast)
    await node.runtime.close()
    await other.until(target, lambda status: status.has_memory)
    await node.reopen()
    await node.becomes(source, "HandedOver")
    assert node.moved(source).state == "Completed"
    await node.runtime.resume(source)
    assert node.status(source).state == "HandedOver"
    await other.reopen()
    assert other.status(target).has_memory
    await resumed(other, target)
    await other.ticked(target, 3)
    await assert_one_guest_said((node, source), (other, target))


async def test_a_move_that_is_under_way_is_found_and_can_be_cancelled(node: Node, other: Node, guest: Path, source: str) -> None:
    _, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, SLOW)
    await node.reopen()
    assert (node.status(source).state, node.moved(source).state) == ("Running", "UnderWay")
    await copied(node, source)
    await node.runtime.cancel(source)
    assert (node.status(source).state, node.moved(source).state) == ("Running", "Cancelled")
    await node.reopen()
    assert (node.moved(source).migration, node.moved(source).state) == ("m", "Cancelled")
    await node.ticked(source, len(await node.ticks(source)) + 3)


async def test_a_guest_that_stood_still_for_its_move_goes_on_after_it(node: Node, other: Node, guest: Path, source: str) -> None:
    """Also when the agent that paused it is gone."""
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, SLOW)
    await copied(node, source)
    await node.runtime.pause(source)
    said = await node.text(source)
    await node.runtime.close()
    await other.runtime.remove(target)
    await asyncio.sleep(0.5)  # nobody there who would let it go on
    await node.reopen()
    await is_moved(node, source, "Failed")
    await node.ticked(source, said.count("tick ") + 5)
    assert node.status(source).state == "Running"


async def test_nobody_knows_whether_a_source_moved_that_died_alone(node: Node, other: Node, guest: Path, source: str) -> None:
    _, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, SLOW)
    pid = node.pid(source)
    await node.runtime.close()
    os.kill(pid, signal.SIGKILL)
    await node.reopen()
    await node.becomes(source, "Crashed")
    assert node.moved(source).state == "UnderWay"


async def test_a_target_whose_agent_was_restarted_waits_where_it_did(node: Node, other: Node, guest: Path, source: str) -> None:
    target, address = await prepared(node, other, guest, source)
    await other.reopen()
    assert (other.status(target).state, other.status(target).has_memory) == ("Incoming", False)
    incoming = other.order_of(target)
    assert await other.runtime.prepare_incoming(incoming, "migration-1") == address
    assert await other.runtime.prepare_incoming(incoming, "migration-1") == address
    await node.runtime.migrate_out(source, "m", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, target)
    await other.ticked(target, 3)


async def test_a_guest_that_came_is_found_as_it_is_and_may_leave_again(node: Node, other: Node, guest: Path, source: str) -> None:
    """Its QEMU still says that a migration is completed: the one by which it came."""
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, target)
    await other.reopen()
    assert other.status(target).state == "Running"
    await other.runtime.pause(target)
    await other.reopen()
    assert (other.status(target).state, other.runtime.moved(target)) == ("Paused", None)
    back, address = await prepared(other, node, guest, target)
    await other.runtime.migrate_out(target, "n", address, PolicySettings())
    await other.becomes(target, "HandedOver")
    await resumed(node, back)
    await node.ticked(back, 3)
    await assert_one_guest_said((node, source), (other, target), (node, back))


async def test_a_guest_that_comes_paused_is_taken_over_paused(node: Node, other: Node, guest: Path, source: str) -> None:
    await node.runtime.pause(source)
    target, address = await prepared(node, other, guest, source)
    await node.runtime.migrate_out(source, "m", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await other.until(target, lambda status: status.has_memory)
    await other.runtime.pause(target)
    assert (other.status(target).state, await other.text(target)) == ("Paused", "")
    await other.reopen()
    assert other.status(target).state == "Paused"
    await other.runtime.resume(target)
    await other.ticked(target, 3)
    await assert_one_guest_said((node, source), (other, target))


async def test_both_sides_have_the_same_shape_and_others_do_not(node: Node, other: Node, guest: Path) -> None:
    wish = {"cpu": {"model": "Nehalem", "cores": 2}, "machine": {"type": "pc"}}
    source = await node.start(LOAD, domain=wish, memory="80Mi")
    target, _ = await prepared(node, other, guest, source)
    shape = node.runtime.shape(source)
    assert shape == other.runtime.shape(target)
    assert {"machine", "cpu", "smp", "memory", "devices"} <= set(shape)
    assert shape["memory"] == f"{80 << 10}K" and "Nehalem" in shape["cpu"] and "cores=2" in shape["smp"]
    more = await node.start(LOAD, domain={**wish, "devices": {"rng": {}}}, memory="80Mi")
    assert {word for word, value in node.runtime.shape(more).items() if value != shape[word]} == {"devices"}
    await node.reopen()
    assert node.runtime.shape(source) == shape


async def test_one_migration_moves_a_guest_once(node: Node, other: Node, guest: Path, source: str) -> None:
    target, address = await prepared(node, other, guest, source)
    await asyncio.gather(*(node.runtime.migrate_out(source, "m", address, SLOW) for _ in range(3)))
    await copied(node, source)
    await node.runtime.cancel(source)
    await other.becomes(target, "Failed")
    await node.runtime.migrate_out(source, "m", address, SLOW)
    assert node.moved(source).state == "Cancelled"
