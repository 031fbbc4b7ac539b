"""Blank volumes, copies, qcow2 images, and the end of a volume."""

import os
import struct
import subprocess
from pathlib import Path

import pytest

from herder.nodes.imports import ImportFailed
from tests.unit.nodes.imports.site import MIB, OTHER, VOLUME, Importing, Site

DISK = os.urandom(MIB)


def qcow2(folder: Path, *options: str, size: str = "2M") -> bytes:
    path = folder / "image.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), size], check=True)
    return path.read_bytes()


def as_qcow2(folder: Path, content: bytes) -> bytes:
    raw, made = folder / "raw", folder / "made.qcow2"
    raw.write_bytes(content)
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(made)], check=True)
    return made.read_bytes()


async def test_a_blank_volume_is_a_hole_of_its_size(importing: Importing) -> None:
    assert (await importing.run(capacity=64 * MIB)).state == "ShutDown"
    found = importing.folder.disk(VOLUME).stat()
    assert (found.st_size, found.st_mode & 0o777) == (64 * MIB, 0o600)
    assert found.st_blocks * 512 < MIB


async def test_a_preallocated_volume_has_all_its_room(importing: Importing) -> None:
    await importing.run(capacity=2 * MIB, preallocate=True)
    assert importing.folder.disk(VOLUME).stat().st_blocks * 512 >= 2 * MIB


async def test_a_copy_is_equal_and_keeps_its_holes(importing: Importing) -> None:
    await importing.run(volume=OTHER, capacity=32 * MIB)
    with importing.folder.disk(OTHER).open("r+b") as file:
        file.seek(8 * MIB)
        file.write(DISK)
    done = await importing.run(action="clone", source=OTHER, capacity=40 * MIB)
    assert done.state == "ShutDown"
    assert importing.content == importing.folder.disk(OTHER).read_bytes() + bytes(8 * MIB)
    assert importing.folder.disk(VOLUME).stat().st_blocks * 512 < 4 * MIB


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
async def test_a_copy_has_the_format_of_its_source_whatever_a_guest_wrote_there(
    importing: Importing, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    site.files["/disk.qcow2"] = qcow2(tmp_path)
    if kind == "raw":
        await importing.run(volume=OTHER, capacity=MIB)
        with importing.folder.disk(OTHER).open("r+b") as disk:
            disk.write(site.files["/disk.qcow2"][:512])
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        await importing.run(volume=OTHER, http={"url": site.url("/disk.qcow2")})
    assert (await importing.run(action="clone", source=OTHER, capacity=4 * MIB)).state == "ShutDown"
    assert [importing.folder.format_of(volume) for volume in (OTHER, VOLUME)] == [kind, kind]
    assert (len(importing.content) == 4 * MIB) == (kind == "raw")


async def test_a_qcow2_within_a_qcow2_is_the_content_of_a_raw_disk(importing: Importing, site: Site, tmp_path: Path) -> None:
    site.files["/disk.qcow2"] = as_qcow2(tmp_path, qcow2(tmp_path).ljust(MIB, b"\0"))
    assert (await importing.fetch(site.url("/disk.qcow2"))).state == "ShutDown"
    assert (importing.folder.format_of(VOLUME), len(importing.content)) == ("raw", 4 * MIB)


async def test_what_became_of_a_fill_that_was_cut_short_before_its_end_is_not_a_volume(importing: Importing) -> None:
    """Its record is there first, and counts for nothing without the disk."""
    part = importing.folder.prepare(VOLUME)
    part.write_bytes(b"half")
    (importing.folder.root / VOLUME / "volume.json").write_text('{"format":"qcow2"}')
    assert not importing.folder.is_filled(VOLUME)
    await importing.run()
    assert importing.folder.format_of(VOLUME) == "raw"


async def test_a_copy_of_nothing_fails(importing: Importing) -> None:
    failed = await importing.run(action="clone", source=OTHER)
    assert failed.reason == "CloneFailed"
    assert OTHER in failed.message


async def test_a_qcow2_becomes_a_raw_disk(importing: Importing, site: Site, tmp_path: Path) -> None:
    site.files["/disk.qcow2"] = as_qcow2(tmp_path, DISK)
    assert (await importing.fetch(site.url("/disk.qcow2"))).state == "ShutDown"
    assert importing.content == DISK + bytes(3 * MIB)
    assert importing.left == [f"{VOLUME}/disk.img", f"{VOLUME}/volume.json"]


async def test_a_qcow2_stays_one_where_nobody_can_convert_it(
    importing: Importing, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/disk.qcow2"] = qcow2(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await importing.fetch(site.url("/disk.qcow2"))).state == "ShutDown"
    assert importing.content == site.files["/disk.qcow2"]


async def test_a_qcow2_that_leads_to_another_file_is_refused(importing: Importing, site: Site, tmp_path: Path) -> None:
    (tmp_path / "base").write_bytes(bytes(MIB))
    site.files["/backing"] = qcow2(tmp_path, "-b", str(tmp_path / "base"), "-F", "raw", size="1M")
    site.files["/data"] = qcow2(tmp_path, "-o", f"data_file={tmp_path / 'data'}")
    for path, words in (("/backing", "backing file"), ("/data", "data file")):
        failed = await importing.fetch(site.url(path))
        assert failed.reason == "NotADiskImage"
        assert words in failed.message
        assert not importing.folder.disk(VOLUME).exists()


async def test_a_qcow2_of_a_disk_that_does_not_fit_is_refused(importing: Importing, site: Site, tmp_path: Path) -> None:
    site.files["/disk.qcow2"] = qcow2(tmp_path, size="1T")
    assert (await importing.fetch(site.url("/disk.qcow2"))).reason == "VolumeTooSmall"


async def test_a_broken_qcow2_is_refused(importing: Importing, site: Site) -> None:
    head = b"QFI\xfb" + struct.pack(">IQIIQ", 3, 0, 0, 16, MIB) + bytes(600)
    for content in (b"QFI\xfb", head, b"QFI\xfb" + struct.pack(">I", 9) + bytes(600)):
        site.files["/disk.qcow2"] = content
        assert (await importing.fetch(site.url("/disk.qcow2"))).reason == "NotADiskImage"


async def test_the_content_of_a_volume_is_removed_and_nothing_else(importing: Importing) -> None:
    await importing.run()
    await importing.run(volume=OTHER)
    assert (await importing.run(action="delete")).state == "ShutDown"
    assert importing.left == [f"{OTHER}/disk.img", f"{OTHER}/volume.json"]
    assert (await importing.run(action="delete")).state == "ShutDown"


async def test_a_link_is_removed_and_not_what_it_leads_to(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    importing.folder.root.mkdir()
    (importing.folder.root / VOLUME).symlink_to(tmp_path / "precious")
    assert (await importing.run()).reason == "ImportFailed"
    assert (await importing.run(action="delete")).state == "ShutDown"
    assert (tmp_path / "precious" / "file").read_text() == "kept"


@pytest.mark.parametrize("name", ["..", "../x", "pvc-..", "", "/etc", "pvc-00000000-0000-4000-8000-00000000000g"])
async def test_other_names_lead_nowhere(importing: Importing, name: str) -> None:
    with pytest.raises(ImportFailed):
        importing.folder.disk(name)
    assert (await importing.run(volume=name, action="delete")).state == "Failed"
