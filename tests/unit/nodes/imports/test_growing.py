"""Disks that grow: all of it or nothing, never shorter, and as their record says."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from herder.nodes.disk_space import DiskSpace, allocated
from herder.nodes.imports.growing import lengthen
from herder.nodes.runtimes.base import Busy, GuestStatus, Refused
from herder.rules.disk_space import Space, parse_reserve
from tests.engines.waiting import eventually
from tests.unit.nodes.imports.site import MIB, VOLUME, Importing, NoGuests

GIB = 1024 * MIB


class Guests(NoGuests):
    """One that has the disk, and what its QEMU was told. It is busy so many times, and refuses where it shall."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self.busy = 0
        self.refuses = False

    def has_open(self, path: Path) -> bool:
        return True

    async def resize(self, path: Path, size: int) -> None:
        if self.busy:
            self.busy -= 1
            raise Busy("it is on its way")
        if self.refuses:
            raise Refused("ImportFailed", "QEMU does not")
        self.told.append((size, path.stat().st_size))


@pytest.fixture
def guests() -> Guests:
    return Guests()


@pytest.fixture
async def importing(tmp_path: Path, guests: Guests) -> AsyncIterator[Importing]:
    async with Importing(tmp_path / "volumes", guests=guests) as ready:
        yield ready


async def grown(importing: Importing, size: int, **more: bool) -> GuestStatus:
    return await importing.run(action="grow", capacity=size, **more)


def size_of(importing: Importing) -> int:
    return importing.folder.disk(VOLUME).stat().st_size


async def test_a_guest_is_told_once_its_disk_is_that_large(importing: Importing, guests: Guests) -> None:
    await importing.run(capacity=4 * MIB)
    assert (await grown(importing, 9 * MIB + 1)).state == "ShutDown"
    # Whole sectors: QEMU knows no others.
    assert guests.told == [(9 * MIB + 512, 9 * MIB + 512)]
    assert allocated(importing.folder.disk(VOLUME)) < MIB
    # Again, by one who was killed before he could say that it is done; and never smaller.
    assert (await grown(importing, 5 * MIB)).state == "ShutDown"
    assert size_of(importing) == 9 * MIB + 512


async def test_a_disk_whose_room_was_taken_at_once_takes_that_for_more_too(importing: Importing) -> None:
    await importing.run(capacity=MIB, preallocate=True)
    assert (await grown(importing, 3 * MIB)).state == "ShutDown"
    assert allocated(importing.folder.disk(VOLUME)) >= 3 * MIB


@pytest.mark.parametrize("preallocate", [False, True])
async def test_without_room_nothing_changes_and_the_numbers_are_told(importing: Importing, preallocate: bool) -> None:
    await importing.run(capacity=MIB, preallocate=preallocate)
    space = Space(total=8 * GIB, free=GIB + 4 * MIB)
    importing.folder.space = DiskSpace(importing.folder.root, parse_reserve("1Gi"), lambda _: space)
    failed = await grown(importing, 8 * GIB)
    assert (failed.reason, "can never be filled" in failed.message) == ("InsufficientStorage", True)
    thin = await grown(importing, 2 * GIB)
    assert (thin.reason, size_of(importing)) == (("InsufficientStorage", MIB) if preallocate else ("", 2 * GIB))
    # Nothing at all grows once the reserve is reached.
    importing.folder.space = DiskSpace(importing.folder.root, parse_reserve("2Gi"), lambda _: space)
    assert (await grown(importing, 3 * GIB)).reason == "InsufficientStorage"


async def test_room_that_ends_on_the_way_leaves_the_disk_as_long_as_it_was(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    disk.write_bytes(b"x" * MIB)
    # What a file system that took the room bit by bit has given by the time that there is no more.
    taken = ["fallocate", "--keep-size", "--offset", str(MIB), "--length", str(4 * MIB), str(disk)]
    await asyncio.to_thread(subprocess.run, taken, check=True)
    assert allocated(disk) >= 5 * MIB
    with pytest.raises(OSError):
        # More than any file system has.
        lengthen(disk, 2**62, preallocated=True)
    assert (disk.stat().st_size, allocated(disk)) == (MIB, MIB)


@pytest.mark.parametrize("preallocate", [False, True])
async def test_who_is_killed_when_the_disk_is_longer_and_its_guest_not_told_tells_it_after_the_next_start(
    tmp_path: Path, guests: Guests, preallocate: bool
) -> None:
    async with Importing(tmp_path / "volumes", guests=guests) as killed:
        await killed.run(capacity=4 * MIB, preallocate=preallocate)
        guests.busy = 1_000_000
        await killed.work.start(killed.pod(action="grow", capacity=9 * MIB))

        async def longer() -> bool:
            return size_of(killed) == 9 * MIB

        await eventually(longer)
    assert guests.told == []
    guests.busy = 0
    async with Importing(tmp_path / "volumes", guests=guests) as again:
        assert (await grown(again, 9 * MIB)).state == "ShutDown"
        assert guests.told == [(9 * MIB, 9 * MIB)]
        assert not preallocate or allocated(again.folder.disk(VOLUME)) >= 9 * MIB


async def test_a_claim_that_nobody_fills_has_its_size_from_the_first_use_on(importing: Importing) -> None:
    missing = await grown(importing, 9 * MIB)
    assert (missing.reason, importing.folder.is_filled(VOLUME)) == ("ContentMissing", False)
    assert (await grown(importing, 9 * MIB, unfilled=True)).state == "ShutDown"
    assert size_of(importing) == 9 * MIB
    # The guest that came at the same moment, with what the volume said before.
    importing.folder.make_blank(VOLUME, 4 * MIB)
    assert size_of(importing) == 9 * MIB


async def test_a_guest_that_cannot_be_told_now_is_waited_for_and_that_is_shown(importing: Importing, guests: Guests) -> None:
    await importing.run(capacity=4 * MIB)
    guests.busy = 1
    pod = importing.pod(action="grow", capacity=9 * MIB)
    await importing.work.start(pod)

    async def waits() -> bool:
        status = importing.work.status(pod.uid)
        return status is not None and status.imported is not None and status.imported.message == "it is on its way"

    await eventually(waits)
    assert (await importing.ended(pod.uid)).state == "ShutDown"
    guests.refuses = True
    assert (await grown(importing, 10 * MIB)).message == "QEMU does not"


async def test_a_qcow2_that_no_guest_has_needs_qemu_img(
    importing: Importing, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = importing.folder.prepare(VOLUME)
    part.write_bytes(b"QFI\xfb".ljust(512, b"\0"))
    importing.folder.finish(VOLUME, part, "qcow2")
    monkeypatch.setattr(guests, "has_open", lambda path: False)
    monkeypatch.setenv("PATH", "")
    failed = await grown(importing, 9 * MIB)
    assert (failed.reason, "start its machine, or install qemu-img" in failed.message) == ("Unsupported", True)
