"""What does not fit is refused, on a real file system that is small."""

import asyncio
import gzip
import os
import subprocess
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from herder.api.guest import SavedGuest, Started
from herder.api.imports import ImportDefinition
from herder.nodes.disk_space import DiskSpace
from herder.nodes.imports import StorageFolder
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.saving import save_memory
from herder.rules.disk_space import Space, parse_reserve
from tests.engines.waiting import eventually
from tests.unit.nodes.imports.site import MIB, OTHER, VOLUME, Importing, Site
from tests.unit.nodes.imports.test_filling import as_qcow2

SIZE = 32 * MIB


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
async def importing(small: Path) -> AsyncIterator[Importing]:
    """Half of it is kept for the store."""
    async with Importing(small / "volumes") as ready:
        ready.folder.space = DiskSpace(small, parse_reserve("50%"))
        yield ready


def free(small: Path) -> int:
    found = os.statvfs(small)
    return found.f_bavail * found.f_frsize


async def refused(importing: Importing, small: Path, words: str, **definition: object) -> None:
    failed = await importing.run(**definition)
    assert (failed.reason, words in failed.message) == ("InsufficientStorage", True), failed
    assert failed.imported is not None and failed.imported.reason == "InsufficientStorage"
    assert not [name for name in importing.left if "part" in name]

    async def given_back() -> bool:
        """The kernel takes a moment for the files of a process that has ended."""
        return free(small) >= SIZE // 2

    await eventually(given_back)


async def test_a_download_that_says_how_large_it_is_is_refused_before_it_begins(
    importing: Importing, small: Path, site: Site
) -> None:
    site.files["/disk.img"] = os.urandom(8 * MIB)
    assert (await importing.fetch(site.url("/disk.img"), capacity=8 * MIB)).state == "ShutDown"
    await refused(importing, small, "are needed", volume=OTHER, http={"url": site.url("/disk.img")}, capacity=10 * MIB)


async def test_one_that_does_not_is_ended_where_the_reserve_begins(importing: Importing, small: Path, site: Site) -> None:
    site.files["/disk.img"] = gzip.compress(os.urandom(12 * MIB), 1)
    (small / "store").write_bytes(bytes(6 * MIB))
    await refused(importing, small, "are needed", http={"url": site.url("/disk.img")}, capacity=15 * MIB)


async def test_a_qcow2_that_grows_into_the_reserve_is_ended(importing: Importing, small: Path, site: Site, tmp_path: Path) -> None:
    """Nearly nothing as an image, and much as a disk."""
    site.files["/disk.qcow2"] = as_qcow2(tmp_path, os.urandom(7 * MIB))
    (small / "store").write_bytes(bytes(3 * MIB))
    await refused(importing, small, "kept for the store", http={"url": site.url("/disk.qcow2")}, capacity=8 * MIB)


async def test_a_copy_that_does_not_fit_is_refused_and_its_holes_do_not_count(importing: Importing, small: Path) -> None:
    await importing.run(volume=OTHER, capacity=15 * MIB)
    with importing.folder.disk(OTHER).open("r+b") as disk:
        disk.write(os.urandom(6 * MIB))
    (small / "store").write_bytes(bytes(6 * MIB))
    await refused(importing, small, "are needed", action="clone", source=OTHER, capacity=15 * MIB)
    (small / "store").unlink()
    assert (await importing.run(action="clone", source=OTHER, capacity=15 * MIB)).state == "ShutDown"


async def test_room_that_is_to_be_taken_at_once_has_to_be_there(importing: Importing, small: Path) -> None:
    (small / "store").write_bytes(bytes(4 * MIB))
    await refused(importing, small, "are needed", capacity=14 * MIB, preallocate=True)
    assert (await importing.run(capacity=14 * MIB)).state == "ShutDown", "a thin one promises it"
    assert (await importing.run(volume=OTHER, capacity=14 * MIB)).state == "ShutDown", "and so may others"


async def test_a_disk_that_could_never_be_filled_is_refused(importing: Importing, small: Path) -> None:
    await refused(importing, small, "a disk of 17Mi can never be filled", capacity=17 * MIB)


async def test_nothing_is_filled_once_the_reserve_is_reached(importing: Importing, small: Path) -> None:
    (small / "store").write_bytes(bytes(17 * MIB))
    failed = await importing.run(capacity=MIB)
    assert (failed.reason, "none can be taken" in failed.message) == ("InsufficientStorage", True)
    assert (await importing.run(action="delete")).state == "ShutDown", "what makes room is always done"


async def test_two_imports_do_not_take_the_same_room(importing: Importing, small: Path, site: Site) -> None:
    site.files["/disk.img"] = os.urandom(9 * MIB)
    http = {"url": site.url("/disk.img")}
    pods = [importing.pod(volume=name, http=http, capacity=10 * MIB) for name in (OTHER, OTHER[:-1] + "3")]
    for pod in pods:
        await importing.work.start(pod)
    ended = await asyncio.gather(*(importing.ended(pod.uid) for pod in pods))
    assert sorted((one.state, one.reason) for one in ended) == [("Failed", "InsufficientStorage"), ("ShutDown", "")]
    assert free(small) >= SIZE // 2


async def test_a_disk_that_is_full_all_the_same_is_called_that(importing: Importing, small: Path, site: Site) -> None:
    """Somebody else may fill it in the meantime."""
    importing.folder.space = DiskSpace(small, parse_reserve("0"), lambda folder: Space(1 << 40, 1 << 40))
    failed = await importing.run(capacity=64 * MIB, preallocate=True)
    assert (failed.reason, "No space left" in failed.message) == ("InsufficientStorage", True), failed


class Guests:
    """Whose memory is saved for as long as nobody lets them end."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()

    async def save(self, guest: str, instance: str, path: Path | None, told: object) -> SavedGuest:
        self.begun += 1
        await self.go.wait()
        return SavedGuest(started=Started())


async def test_memory_that_is_saved_at_once_shares_the_room_that_there_is(small: Path) -> None:
    """Each alone would fit: both together would take what is kept for the store."""
    folder, guests = StorageFolder(small / "volumes", DiskSpace(small, parse_reserve("50%"))), Guests()

    def saving(volume: str) -> Coroutine[Any, Any, SavedGuest]:
        definition = ImportDefinition(action="save", volume=volume, capacity=SIZE // 3, guest="guest")
        return save_memory(folder, definition, "instance", guests, lambda done, total: None, lambda why: None)

    first = asyncio.create_task(saving(VOLUME))
    await eventually(lambda: asyncio.sleep(0, guests.begun))
    with pytest.raises(ImportFailed, match="are taken by what is written now"):
        await saving(OTHER)
    guests.go.set()
    await first
    await saving(OTHER)
