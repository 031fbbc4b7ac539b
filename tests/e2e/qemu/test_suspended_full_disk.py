"""The storage becomes full while the memory of a real guest is saved: the guest goes on, its reason is said, nothing is left of the
try, and once there is room it is suspended."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.qemu.counters import MACHINES, PATIENCE, counters
from tests.e2e.qemu.test_suspending import ask, asleep
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
MIB = 1 << 20
SIZE = 400 * MIB
LOAD = "rate=20 dirty=2M/s working-set=200M"


class Small:
    """A file system of 400 MiB, and somebody who takes all of it as soon as memory comes in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait)

    def fill(self) -> None:
        """But for a little. Whoever writes meanwhile may be faster: then less is left to be taken."""
        while True:
            found = os.statvfs(self.folder)
            with suppress(OSError), self._filler.open("wb") as file:
                return os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - 4 * MIB))

    def fill_half_way(self) -> None:
        self._thread.start()

    def _wait(self) -> None:
        while not self._over.wait(0.0005):
            if any(one.stat().st_size > MIB for one in self.folder.glob("*/memory.part")):
                self.fill()
                break

    def clear(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._filler.unlink(missing_ok=True)

    @property
    def files(self) -> list[str]:
        return [one.name for one in self.folder.glob("*/*")]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    folder = tmp_path / "data" / "volumes"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    made = Small(folder)
    try:
        yield made
    finally:
        made.clear()
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("when", ["before", "half-way"])
async def test_a_guest_whose_memory_finds_no_room_goes_on_and_is_suspended_when_there_is_some(
    tmp_path: Path, guest: Path, small: Small, when: str
) -> None:
    async with counters(tmp_path, guest, nodes=1, settings=("--storage-reserve", "1Mi")) as herd:
        await herd.make("web", LOAD, memory="256Mi")
        await herd.runs("web")
        small.fill() if when == "before" else small.fill_half_way()
        await ask(herd, "web", True)

        async def said() -> str:
            (machine,) = await herd.all(MACHINES)
            found = [one for one in machine["status"]["conditions"] if one["type"] == "Suspended"]
            assert [one["reason"] for one in found] == ["SaveFailed"], found
            return found[0]["message"]

        message = await eventually(said, PATIENCE)
        assert "the guest goes on, and it is tried again" in message
        await herd.counts("web")
        assert [name for name in small.files if name.startswith("memory")] == []
        small.clear()
        await asleep(herd, "web")
        await ask(herd, "web", None)
        await herd.runs("web")
        herd.witness.assert_one_counter("web")
