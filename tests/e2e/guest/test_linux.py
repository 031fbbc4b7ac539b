"""A Linux that people know: Debian's cloud kernel with a busybox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import EngineMissing
from tests.e2e.guest.linux import initramfs
from tests.e2e.guest.machine import running
from tools.guest.build import build_linux

_FETCH = Path(__file__).parents[3] / "tools" / "qemu" / "linux.sh"
_SCRIPT = """
/bin/busybox mount -t proc proc /proc
echo hello from Linux $(/bin/busybox uname -r) with $(/bin/busybox nproc) CPUs
/bin/busybox poweroff -f
"""


@pytest.fixture(scope="session")
def linux(qemu: str) -> Path:
    """The folder with vmlinuz and busybox."""
    answer = subprocess.run([str(_FETCH)], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise EngineMissing((answer.stderr.strip().splitlines() or ["no Linux to test with"])[-1])
    return Path(answer.stdout.strip())


@pytest.mark.parametrize("files", ["two files", "one file"])
async def test_a_linux_boots_speaks_and_switches_itself_off(linux: Path, accelerator: str, tmp_path: Path, files: str) -> None:
    image = tmp_path / "initramfs"
    image.write_bytes(initramfs(linux / "busybox", _SCRIPT))
    boot = ["-kernel", str(linux / "vmlinuz"), "-initrd", str(image)]
    if files == "one file":
        boot = ["-kernel", str(build_linux(linux / "vmlinuz", image, tmp_path / "linux"))]
    options = ["-machine", "q35", "-accel", accelerator, "-m", "192M", "-smp", "2", "-append", "console=ttyS0 quiet panic=-1"]
    async with running(*options, *boot) as guest:
        await guest.says(r".*hello from Linux [0-9].*-cloud-amd64 with 2 CPUs")
        assert (await guest.event("SHUTDOWN"))["reason"] == "guest-shutdown"
        assert await guest.ended() == 0
