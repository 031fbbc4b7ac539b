"""Guests on a disk that becomes full: none is corrupted, what is kept for the store is kept, and they go on when there is room."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from herder.api import reasons
from herder.nodes.disk_space import DiskSpace
from herder.nodes.runtimes.base import FileVolume, Refused, Volume
from herder.rules.disk_space import parse_reserve
from tests.e2e.qemu.node import Node, order
from tests.e2e.qemu.writer import put_on, writer
from tests.unit.nodes.imports.site import MIB

SIZE = 24 * MIB
DISK = 64 * MIB


class Small:
    """A file system of 24 MiB, which can be made larger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def grow(self) -> None:
        subprocess.run(["mount", "-o", f"remount,size={4 * DISK}", self.folder], check=True)

    @property
    def free(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield Small(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
async def filling(small: Small, node: Node, tmp_path: Path) -> str:
    """A guest that writes all of a thin disk which is larger than what there is."""
    disk = small.folder / "disk.img"
    with disk.open("wb") as file:
        file.truncate(DISK)
    put_on(disk, tmp_path, fill=True)
    volumes: dict[str, Volume] = {"root": FileVolume(disk)}
    machine = writer(volumes)
    await node.runtime.start(machine)
    return machine.guest


async def test_a_guest_that_meets_the_end_of_the_disk_stands_still_and_goes_on_with_the_same_write(
    node: Node, small: Small, filling: str
) -> None:
    status = await node.becomes(filling, "Paused")
    assert (status.reason, "goes on when there is room" in status.message) == (reasons.INSUFFICIENT_STORAGE, True)
    assert small.free < MIB
    await node.reopen()
    assert (node.status(filling).state, node.status(filling).reason) == ("Paused", reasons.INSUFFICIENT_STORAGE)
    small.grow()
    await node.runtime.room(short=False, back=True)
    await node.says(filling, r"\.*wrote")
    assert "error" not in await node.text(filling)
    assert node.status(filling).state == "Running" and node.status(filling).reason == ""


@pytest.fixture
async def watched(small: Small, node: Node) -> AsyncIterator[DiskSpace]:
    """As an agent watches it: half of it is kept for the store."""
    space = DiskSpace(small.folder, parse_reserve("50%"))

    async def told(short: bool, back: bool) -> None:
        await node.runtime.room(short=short, back=back)

    task = asyncio.create_task(space.watch(told))
    yield space
    task.cancel()
    await asyncio.wait([task])


async def test_a_guest_that_takes_what_is_kept_for_the_store_is_held_back_and_others_go_on(
    node: Node, small: Small, watched: DiskSpace, tmp_path: Path
) -> None:
    """Slowly enough for an agent to see it coming: the test itself writes, as the guest's QEMU would."""
    disk = small.folder / "disk.img"
    with disk.open("wb") as file:
        file.truncate(DISK)
    quiet = await node.start()
    guest = await node.start(
        volumes={"root": FileVolume(disk)},
        domain={"devices": {"disks": [{"name": "root"}]}, "firmware": {"kernelBoot": {"volume": {"name": "kernel"}}}},
    )
    await node.ticked(guest, 1)
    written = 0
    with disk.open("r+b", buffering=0) as file:
        while node.status(guest).state == "Running" and written < SIZE:
            file.write(os.urandom(MIB // 4))
            written += MIB // 4
            await watched.look(lambda short, back: node.runtime.room(short=short, back=back))
    status = await node.becomes(guest, "Paused")
    assert status.reason == reasons.INSUFFICIENT_STORAGE
    assert watched.pressure and SIZE // 8 < small.free < SIZE // 4 + MIB
    assert node.status(quiet).state == "Running", "whoever takes nothing goes on"
    await node.reopen()
    assert (node.status(guest).state, node.status(guest).reason) == ("Paused", reasons.INSUFFICIENT_STORAGE)
    small.grow()
    assert (await node.becomes(guest, "Running")).reason == ""
    assert not watched.pressure
    ticks = len(await node.ticks(guest))
    await node.ticked(guest, ticks + 3)


async def test_what_its_owner_wants_counts_also_where_there_is_no_room(node: Node, small: Small, filling: str) -> None:
    await node.becomes(filling, "Paused")
    await node.runtime.pause(filling)
    assert node.status(filling).reason == ""
    small.grow()
    await node.runtime.room(short=False, back=True)
    assert node.status(filling).state == "Paused", "its owner has paused it since"
    await node.runtime.resume(filling)
    await node.says(filling, r"\.*wrote")


async def test_a_kernel_that_would_fill_the_disk_when_it_is_copied_is_refused(node: Node, tmp_path: Path) -> None:
    """A hole in a volume takes nothing; in its copy it would."""
    with (tmp_path / "kernel").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Refused, match=r"volume kernel has 1099511627776 bytes to boot from; at most 1024 MiB can be"):
        await node.runtime.start(order(tmp_path / "kernel"))
    assert list((node.folder / "guests").iterdir()) == []
