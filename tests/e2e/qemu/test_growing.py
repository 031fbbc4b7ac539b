"""Disks that grow under real guests: QEMU, the guest's device and the file are as large as the claim asks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from herder.api.imports import ImportDefinition
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.imports import StorageFolder
from herder.nodes.imports.growing import grow
from herder.nodes.runtimes.base import DiskFormat, FileVolume, Volume
from tests.e2e.guest.machine import PATIENCE
from tests.e2e.qemu.moves import resumed
from tests.e2e.qemu.node import Node, order
from tests.e2e.qemu.test_devices import disks
from tests.e2e.qemu.test_disk_formats import boot
from tests.unit.nodes.imports.site import MIB, VOLUME, NoGuests


def filled(tmp_path: Path, kind: DiskFormat) -> StorageFolder:
    """With one disk of 5 MiB, as an importer leaves it."""
    folder = StorageFolder(tmp_path / "volumes")
    part = folder.prepare(VOLUME)
    subprocess.run(["qemu-img", "create", "-q", "-f", kind, part, str(5 * MIB)], check=True)
    folder.finish(VOLUME, part, kind)
    return folder


def disk_of(folder: StorageFolder) -> dict[str, Volume]:
    return {"root": FileVolume(folder.disk(VOLUME), format=folder.format_of(VOLUME))}


def virtual_size(folder: StorageFolder, kind: DiskFormat) -> int:
    command = ["qemu-img", "info", "--output=json", "-f", kind, folder.disk(VOLUME)]
    return int(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["virtual-size"])


async def sizes(node: Node, guest: str) -> list[int]:
    """Of the guest's disks, as its QEMU has them."""
    control = node.runtime._guests[guest].control  # pyright: ignore[reportPrivateUsage]
    nodes: list[dict[str, Any]] = await control.do("query-named-block-nodes", flat=True)
    return [one["image"]["virtual-size"] for one in nodes if one["node-name"].startswith("disk")]


def to(size: int) -> ImportDefinition:
    return ImportDefinition(action="grow", volume=VOLUME, capacity=size)


def never(why: str) -> None:
    raise AssertionError(f"it should not have waited: {why}")


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
async def test_a_guest_that_runs_sees_its_disk_grow(node: Node, tmp_path: Path, kind: DiskFormat) -> None:
    folder = filled(tmp_path, kind)
    guest = await node.start(volumes=disk_of(folder), domain={**disks("root"), "firmware": boot()})
    await node.says(guest, r"disk virtio bus=0 slot=\d+ size=5M")
    await grow(folder, to(9 * MIB), node.runtime, never)
    assert await sizes(node, guest) == [9 * MIB]
    # By an agent that was killed before it could tell, too; and never smaller.
    await node.reopen()
    await grow(folder, to(7 * MIB), node.runtime, never)
    assert await sizes(node, guest) == [9 * MIB]
    await node.runtime.remove(guest)
    assert virtual_size(folder, kind) == 9 * MIB
    again = await node.start(volumes=disk_of(folder), domain={**disks("root"), "firmware": boot()})
    await node.says(again, r"disk virtio bus=0 slot=\d+ size=9M")


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
async def test_a_disk_that_nobody_uses_grows(tmp_path: Path, kind: DiskFormat) -> None:
    folder = filled(tmp_path, kind)
    await grow(folder, to(9 * MIB), NoGuests(), never)
    assert virtual_size(folder, kind) == 9 * MIB
    about = os.stat(folder.disk(VOLUME))
    assert (about.st_uid, folder.format_of(VOLUME)) == (os.geteuid(), kind)


@pytest.mark.usefixtures("migrations")
async def test_a_guest_that_moves_is_waited_for_and_sees_it_where_it_is_then(
    node: Node, other: Node, guest: Path, tmp_path: Path
) -> None:
    """Its target has opened the disk as it was."""
    folder = filled(tmp_path, "raw")
    domain = {**disks("root"), "firmware": boot()}
    source = await node.start(volumes=disk_of(folder), domain=domain)
    incoming = order(guest, volumes=disk_of(folder), domain=domain, incoming=node.status(source).started)
    address = await other.runtime.prepare_incoming(incoming, "migration-1")
    waits = asyncio.Event()
    growing = asyncio.create_task(grow(folder, to(9 * MIB), other.runtime, lambda why: waits.set()))
    async with asyncio.timeout(PATIENCE):
        await waits.wait()
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, incoming.guest)
    await growing
    assert await sizes(other, incoming.guest) == [9 * MIB]
    await other.ticked(incoming.guest, 3)
