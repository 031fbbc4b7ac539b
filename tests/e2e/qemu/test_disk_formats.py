"""A guest that writes the header of another format into its disk gets its disk back as it was, wherever it is started next."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.imports import StorageFolder
from herder.nodes.moving.greeting import difference
from herder.nodes.runtimes.base import FileVolume, Refused, Volume
from tests.e2e.qemu.moves import resumed
from tests.e2e.qemu.node import Node, order
from tests.e2e.qemu.test_devices import disks
from tests.e2e.qemu.writer import put_on, writer
from tests.unit.nodes.imports.site import MIB, VOLUME

# A whole petabyte, and a backing file on the node.
HEADER = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 104, 11, 16, 1 << 50).ljust(104, b"\0") + b"/etc/passwd"


@pytest.fixture
def storage(tmp_path: Path) -> StorageFolder:
    """With one blank volume, as an importer leaves it."""
    folder = StorageFolder(tmp_path / "volumes")
    part = folder.prepare(VOLUME)
    with part.open("xb") as file:
        file.truncate(5 * MIB)
    folder.finish(VOLUME, part, "raw")
    return folder


def disk_of(storage: StorageFolder) -> dict[str, Volume]:
    """As the agent finds it for each start."""
    return {"root": FileVolume(storage.disk(VOLUME), format=storage.format_of(VOLUME))}


async def written(node: Node, storage: StorageFolder, tmp_path: Path) -> None:
    """The disk's own guest has made it look like a qcow2."""
    put_on(storage.disk(VOLUME), tmp_path, second=HEADER)
    machine = writer(disk_of(storage))
    await node.runtime.start(machine)
    await node.says(machine.guest, "wrote")
    await node.runtime.remove(machine.guest)
    assert storage.disk(VOLUME).read_bytes()[: len(HEADER)] == HEADER


async def test_a_raw_disk_stays_one_when_its_guest_writes_the_header_of_a_qcow2(
    node: Node, storage: StorageFolder, tmp_path: Path
) -> None:
    await written(node, storage, tmp_path)
    guest = await node.start(volumes=disk_of(storage), domain={**disks("root"), "firmware": boot()})
    await node.says(guest, r"disk virtio bus=0 slot=\d+ size=5M")
    assert node.runtime.shape(guest)["disks"] == "disk0=raw"


@pytest.mark.usefixtures("migrations")
async def test_it_stays_one_where_it_moves_to_and_the_two_sides_compare_that(
    node: Node, other: Node, guest: Path, storage: StorageFolder, tmp_path: Path
) -> None:
    await written(node, storage, tmp_path)
    source = await node.start(volumes=disk_of(storage), domain={**disks("root"), "firmware": boot()})
    await node.says(source, r"disk virtio bus=0 slot=\d+ size=5M")
    domain = {**disks("root"), "firmware": boot()}
    incoming = order(guest, volumes=disk_of(storage), domain=domain, incoming=node.status(source).started)
    address = await other.runtime.prepare_incoming(incoming, "migration-1")
    assert difference(node.runtime.shape(source), other.runtime.shape(incoming.guest)) == ""
    await node.runtime.migrate_out(source, "migration-1", address, PolicySettings())
    await node.becomes(source, "HandedOver")
    await resumed(other, incoming.guest)
    await other.ticked(incoming.guest, 3)
    assert other.runtime.shape(incoming.guest)["disks"] == "disk0=raw"


async def test_a_target_that_has_the_disk_in_another_format_is_told_apart(
    node: Node, other: Node, guest: Path, storage: StorageFolder, tmp_path: Path
) -> None:
    """QEMU itself compares nothing, and would tear the disk to pieces."""
    source = await node.start(volumes=disk_of(storage), domain={**disks("root"), "firmware": boot()})
    header = struct.pack(">4sIQIIQIIQQII", b"QFI\xfb", 2, 0, 0, 16, 5 * MIB, 0, 1, 196608, 65536, 1, 0)
    (tmp_path / "qcow2").write_bytes(header.ljust(1 << 18, b"\0"))
    volumes: dict[str, Volume] = {"root": FileVolume(tmp_path / "qcow2", format="qcow2")}
    domain = {**disks("root"), "firmware": boot()}
    incoming = order(guest, volumes=volumes, domain=domain, incoming=node.status(source).started)
    await other.runtime.prepare_incoming(incoming, "migration-1")
    differ = difference(node.runtime.shape(source), other.runtime.shape(incoming.guest))
    assert differ == "disks is 'disk0=raw' at the source and 'disk0=qcow2' at the target"


async def test_a_guest_that_ran_before_formats_were_written_down_says_them_when_it_is_found_again(
    node: Node, storage: StorageFolder
) -> None:
    guest = await node.start(volumes=disk_of(storage), domain={**disks("root"), "firmware": boot()})
    await node.runtime.close()
    record = node.folder / "guests" / guest / "guest.json"
    record.write_bytes(record.read_bytes().replace(b',"disks":"disk0=raw"', b""))
    assert b"disk0=raw" not in record.read_bytes()
    await node.reopen()
    assert node.runtime.shape(guest)["disks"] == "disk0=raw"


async def test_a_disk_that_was_imported_as_a_qcow2_and_leads_to_another_file_since_is_refused(
    node: Node, guest: Path, tmp_path: Path
) -> None:
    (tmp_path / "qcow2").write_bytes(HEADER.ljust(1 << 16, b"\0"))
    volumes: dict[str, Volume] = {"root": FileVolume(tmp_path / "qcow2", format="qcow2")}
    with pytest.raises(Refused, match="backing file"):
        await node.runtime.start(order(guest, volumes=volumes, domain={**disks("root"), "firmware": boot()}))


def boot() -> dict[str, object]:
    return {"kernelBoot": {"volume": {"name": "kernel"}, "kernelArgs": "rate=50"}}
