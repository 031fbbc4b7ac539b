"""Words for tests that move guests between two nodes' runtimes."""

from __future__ import annotations

from pathlib import Path

from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from tests.e2e.guest.machine import PATIENCE, assert_unbroken
from tests.e2e.qemu.node import Node, order
from tests.engines.waiting import eventually

LOAD = "rate=50 dirty=64M/s working-set=16M"
# Slower than the guest writes: it never ends by itself.
SLOW = PolicySettings(bandwidth_per_migration="4Mi", max_downtime_ms=1)


async def prepared(
    here: Node, there: Node, guest: Path, source: str, settings: PolicySettings | None = None, migration: str = "migration-1"
) -> tuple[str, str]:
    """The target, and where it waits."""
    incoming = order(guest, LOAD, incoming=here.status(source).started)
    return incoming.guest, await there.runtime.prepare_incoming(incoming, migration, settings)


async def copied(node: Node, guest: str, least: int = 1 << 20) -> MigrationProgress:
    async def look() -> MigrationProgress:
        progress = node.moved(guest).progress
        assert progress is not None and (progress.transferred_bytes or 0) >= least, progress
        return progress

    return await eventually(look, PATIENCE)


async def is_moved(node: Node, guest: str, state: str, patience: float = PATIENCE) -> None:
    await node.until(guest, lambda status: node.moved(guest).state == state, patience)


async def resumed(node: Node, guest: str) -> None:
    """As the source's leave does it."""
    await node.until(guest, lambda status: status.has_memory)
    await node.runtime.resume(guest)
    assert node.status(guest).state == "Running"


async def whole_lines(node: Node, guest: str) -> str:
    text = await node.text(guest)
    return text[: text.rfind("\n") + 1]


async def assert_one_guest_said(*places: tuple[Node, str]) -> None:
    """What it wrote here and there, put together, has neither gap nor double, and no page was ever wrong."""
    texts = [await node.text(guest) for node, guest in places[:-1]]
    assert_unbroken("".join([*texts, await whole_lines(*places[-1])]))


async def check_memory(node: Node, guest: str, pages: int = 4096) -> None:
    console = await node.runtime.console(guest)
    await console.write(b"check\n")
    await node.says(guest, f"checked {pages} pages errors=0")
    await console.close()
