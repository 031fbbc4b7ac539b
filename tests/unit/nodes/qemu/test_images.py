"""Which images a guest may have."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.api import reasons
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Refused, Volume
from herder.nodes.runtimes.qemu.blueprint import DiskPlan
from herder.nodes.runtimes.qemu.command import Image
from herder.nodes.runtimes.qemu.images import open_image
from herder.nodes.runtimes.qemu.record import Folder


def qcow2(version: int = 3, backing: int = 0, features: int = 0) -> bytes:
    return struct.pack(">4sIQ", b"QFI\xfb", version, backing).ljust(72, b"\0") + struct.pack(">Q", features) + bytes(24)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[Image]]:
    found: list[Image] = []
    yield found
    for image in found:
        os.close(image.descriptor)


def opening(volume: Volume, folder: Path, opened: list[Image]) -> Image:
    image = open_image(volume, DiskPlan(volume="root", bus="virtio"), Folder(folder))
    opened.append(image)
    return image


ANYTHING = (bytes(1024), b"", qcow2(), qcow2(2), qcow2(backing=512), qcow2(features=4), b"KDMV" + bytes(99))


@pytest.mark.parametrize("content", ANYTHING)
def test_a_raw_disk_is_raw_whatever_its_guest_wrote_into_it(tmp_path: Path, opened: list[Image], content: bytes) -> None:
    (tmp_path / "image").write_bytes(content)
    assert opening(FileVolume(tmp_path / "image", format="raw"), tmp_path, opened).format == "raw"


@pytest.mark.parametrize("version", [2, 3])
def test_a_disk_that_was_recorded_as_qcow2_is_opened_as_one(tmp_path: Path, opened: list[Image], version: int) -> None:
    (tmp_path / "image").write_bytes(qcow2(version))
    assert opening(FileVolume(tmp_path / "image", format="qcow2"), tmp_path, opened).format == "qcow2"


@pytest.mark.parametrize(
    ("content", "reason", "why"),
    [
        (qcow2(backing=512), reasons.SOURCE_FORBIDDEN, "backing file"),
        (qcow2(2, backing=512), reasons.SOURCE_FORBIDDEN, "backing file"),
        (qcow2(features=4), reasons.SOURCE_FORBIDDEN, "data file"),
        (qcow2(4), reasons.NOT_A_DISK_IMAGE, "version 4"),
        (b"QFI\xfb", reasons.NOT_A_DISK_IMAGE, "ends in its header"),
        (b"KDMV" + bytes(100), reasons.NOT_A_DISK_IMAGE, "recorded as qcow2, and is none"),
        (b"", reasons.NOT_A_DISK_IMAGE, "recorded as qcow2, and is none"),
    ],
)
def test_a_qcow2_that_reads_other_files_or_is_none_is_refused(tmp_path: Path, content: bytes, reason: str, why: str) -> None:
    (tmp_path / "image").write_bytes(content)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(Refused, match=f"volume root: .*{why}") as refused:
        opening(FileVolume(tmp_path / "image", format="qcow2"), tmp_path, [])
    assert refused.value.reason == reason
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_links_pipes_and_folders_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "nothing"):
        with pytest.raises(Refused, match="volume root: its image"):
            opening(FileVolume(tmp_path / name), tmp_path, [])


def test_a_claim_that_is_a_folder_has_its_disk_in_it(tmp_path: Path, opened: list[Image]) -> None:
    (tmp_path / "claim").mkdir()
    (tmp_path / "claim" / "disk.img").write_bytes(qcow2())
    assert opening(FileVolume(tmp_path / "claim", format="qcow2"), tmp_path, opened).format == "qcow2"


def test_an_empty_disk_takes_no_room_before_it_is_written_to(tmp_path: Path, opened: list[Image]) -> None:
    image = opening(EmptyVolume((1 << 30) + 1), tmp_path, opened)
    about = os.fstat(image.descriptor)
    assert (about.st_size, image.read_only) == ((1 << 30) + 512, False)
    assert about.st_blocks * 512 < 1 << 16


def test_a_disk_of_files_can_only_be_read(tmp_path: Path, opened: list[Image]) -> None:
    image = opening(FilesVolume({"user-data": b"hello"}, "cidata"), tmp_path, opened)
    assert (image.format, image.read_only) == ("raw", True)
    assert [path.name for path in tmp_path.iterdir()] == ["files-root.iso"]
