"""Whoever converts an image that a stranger sent can do nothing but that, and not for ever."""

import asyncio
import ctypes
import os
import pwd
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from herder.nodes.imports import ImportFailed, confined
from herder.nodes.imports.converting import LIMITS, Limits, to_raw
from herder.nodes.runtimes.qemu.process import start_time
from tests.engines.waiting import eventually
from tests.unit.nodes.imports.site import MIB, VOLUME, Importing, Site
from tests.unit.nodes.imports.test_filling import as_qcow2, qcow2

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


def has_landlock() -> bool:
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint(1)) > 0


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A `qemu-img` of these lines of a shell, from then on. Whoever runs as another user can come there, whatever becomes of the
    folders of pytest, which another run of it makes its own again."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)

        def make(lines: str) -> None:
            (folder / "qemu-img").write_text(f"#!/bin/bash\n{lines}\n")
            (folder / "qemu-img").chmod(0o755)
            monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

        yield make


def children(name: str, of: int | None = None) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text()
        except OSError:
            continue
        state, parent = words.rpartition(")")[2].split()[:2]
        if f"({name})" in words and state != "Z" and int(parent) == (of or os.getpid()):
            found.append(int(folder.name))
    return found


@pytest.fixture
async def sleeping(importing: Importing, site: Site, tmp_path: Path, pretend: Callable[[str], None]) -> AsyncIterator[int]:
    """An import whose conversion has begun and does not end: the process."""
    site.files["/disk.qcow2"] = qcow2(tmp_path)
    pretend("exec sleep 1000")
    await importing.work.start(importing.pod(http={"url": site.url("/disk.qcow2")}))

    async def found() -> int:
        pids = children("sleep")
        assert len(pids) == 1
        return pids[0]

    yield await eventually(found, 30)


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_it_has_limits_from_the_beginning_and_can_gain_nothing(sleeping: int) -> None:
    about, text = status_of(sleeping), Path(f"/proc/{sleeping}/limits").read_text()
    limits = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()}
    assert (about["NoNewPrivs"], about["Seccomp"]) == ("1", "2")
    assert limits["Max address space"] == str(LIMITS.memory)
    assert limits["Max file size"] == str(2 * MIB + 512)
    assert limits["Max core file size"] == "0"
    assert limits["Max open files"] == str(LIMITS.open_files)
    assert 300 <= int(limits["Max cpu time"]) < 400
    assert os.getsid(sleeping) == sleeping


@as_root
async def test_it_is_another_user_without_groups_and_without_the_network_of_the_machine(sleeping: int) -> None:
    about, nobody = status_of(sleeping), pwd.getpwnam("nobody")
    assert set(about["Uid"].split()) == {str(nobody.pw_uid)}
    assert set(about["Gid"].split()) == {str(nobody.pw_gid)}
    assert about["Groups"] == "" and int(about["CapEff"], 16) == 0
    assert os.readlink(f"/proc/{sleeping}/ns/net") != os.readlink("/proc/self/ns/net")


async def test_it_ends_with_its_import(importing: Importing, sleeping: int) -> None:
    (uid,) = importing.work.uids()
    await importing.work.remove(uid)
    assert children("sleep") == []
    assert importing.left == []


async def test_it_reaches_nobody_and_reads_nothing_else(
    importing: Importing, site: Site, tmp_path: Path, pretend: Callable[[str], None]
) -> None:
    site.files["/disk.qcow2"] = qcow2(tmp_path)
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    stranger = await asyncio.create_subprocess_exec("sleep", "1000", user=user)
    try:
        pretend(
            f"kill -9 {stranger.pid} 2>/dev/null && echo killed >&2\n"
            f"(echo hello > /dev/tcp/127.0.0.1/{site.port}) 2>/dev/null && echo connected >&2\n"
            "read line < /etc/passwd && echo read >&2\n"
            "exit 1"
        )
        failed = await importing.fetch(site.url("/disk.qcow2"))
        assert "qemu-img could not read it" in failed.message
        assert "connected" not in failed.message and "killed" not in failed.message
        assert stranger.returncode is None
        if has_landlock():
            assert "Permission denied" in failed.message and "read\n" not in failed.message
    finally:
        stranger.kill()
        await stranger.wait()


@pytest.mark.slow
async def test_one_that_takes_too_long_is_ended_and_that_is_said(tmp_path: Path, pretend: Callable[[str], None]) -> None:
    (tmp_path / "image").write_bytes(qcow2(tmp_path))
    pretend("exec sleep 1000")
    with pytest.raises(ImportFailed, match="qemu-img was not done with it after 1 s, and was ended"):
        await to_raw(tmp_path / "image", tmp_path / "raw", MIB, limits=Limits(seconds=1.0, bytes_per_second=1 << 40))
    assert children("sleep") == []


@pytest.mark.slow
async def test_one_that_complains_without_end_is_heard_and_ended(tmp_path: Path, pretend: Callable[[str], None]) -> None:
    (tmp_path / "image").write_bytes(qcow2(tmp_path))
    pretend("while :; do echo a complaint of some length >&2; done")
    with pytest.raises(ImportFailed, match="was not done"):
        await to_raw(tmp_path / "image", tmp_path / "raw", MIB, limits=Limits(seconds=1.0, bytes_per_second=1 << 40))


async def test_one_that_writes_more_than_the_disk_has_is_ended(tmp_path: Path, pretend: Callable[[str], None]) -> None:
    (tmp_path / "image").write_bytes(qcow2(tmp_path))
    pretend('exec dd if=/dev/zero of="${@: -1}" bs=1M count=64')
    with pytest.raises(ImportFailed, match="qemu-img could not read it"):
        await to_raw(tmp_path / "image", tmp_path / "raw", MIB)
    assert (tmp_path / "raw").stat().st_size <= MIB + 512


@pytest.mark.slow
async def test_it_does_not_outlive_an_agent_that_is_killed(tmp_path: Path, pretend: Callable[[str], None]) -> None:
    (tmp_path / "image").write_bytes(qcow2(tmp_path))
    pretend("exec sleep 1000")
    code = (
        "import asyncio, sys; from pathlib import Path; from herder.nodes.imports.converting import to_raw;"
        "asyncio.run(to_raw(Path(sys.argv[1]), Path(sys.argv[2]), 1 << 20))"
    )
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(tmp_path / "image"), str(tmp_path / "raw"))

    async def found() -> int:
        pids = children("sleep", agent.pid)
        assert len(pids) == 1
        return pids[0]

    pid = await eventually(found, 30)
    agent.send_signal(signal.SIGKILL)
    await agent.wait()

    async def gone() -> bool:
        return start_time(pid) is None

    await eventually(gone, 30)


async def test_what_it_leaves_behind_is_ours_alone(importing: Importing, site: Site, tmp_path: Path) -> None:
    site.files["/disk.qcow2"] = as_qcow2(tmp_path, os.urandom(MIB))
    assert (await importing.fetch(site.url("/disk.qcow2"))).state == "ShutDown"
    found = importing.folder.disk(VOLUME).stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (os.geteuid(), os.getegid(), 0o600)


async def test_holes_of_an_image_stay_holes(importing: Importing, site: Site, tmp_path: Path) -> None:
    site.files["/disk.qcow2"] = qcow2(tmp_path, size="64M")
    assert (await importing.fetch(site.url("/disk.qcow2"), capacity=64 * MIB)).state == "ShutDown"
    assert importing.folder.disk(VOLUME).stat().st_blocks * 512 < MIB


def header(**fields: int) -> bytes:
    """Of a qcow2 of 1 MiB, with something wrong about it."""
    order = ("version", "backing", "backing_size", "cluster", "size", "crypt", "l1", "l1_at", "refs_at", "refs", "snapshots")
    usual = {"version": 3, "cluster": 16, "size": MIB, "l1": 1, "l1_at": 3 << 16, "refs_at": 1 << 16, "refs": 1}
    values = [(usual | fields).get(name, 0) for name in order]
    head = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", *values, 0) + struct.pack(">Q", fields.get("features", 0))
    return head.ljust(104, b"\0") + b"/etc/passwd".ljust(4 << 16, b"\0")


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (header(size=1 << 62), "VolumeTooSmall", "a disk of"),
        (header(l1=0xFFFFFFFF), "NotADiskImage", "4294967295 L1 entries"),
        (header(refs=0xFFFFFFFF), "NotADiskImage", "tables are too large"),
        (header(snapshots=0xFFFFFFFF), "NotADiskImage", "tables are too large"),
        (header(cluster=62), "NotADiskImage", "clusters of 2^62"),
        (header(cluster=0), "NotADiskImage", "clusters of 2^0"),
        (header(backing=104, backing_size=11), "NotADiskImage", "backing file"),
        (header(features=4), "NotADiskImage", "data file"),
        (header(features=1 << 60), "NotADiskImage", "qemu-img could not read it"),
    ],
)
async def test_images_that_want_to_take_the_node_apart_are_refused(
    importing: Importing, site: Site, content: bytes, reason: str, words: str
) -> None:
    site.files["/disk.qcow2"] = content
    failed = await importing.fetch(site.url("/disk.qcow2"))
    assert (failed.reason, words in failed.message) == (reason, True), failed.message
    assert importing.left == []


async def test_an_image_that_names_another_file_is_not_led_there_even_by_the_converter(tmp_path: Path) -> None:
    """The header is looked at before. Should that ever miss one, the converter is told that there is no backing file."""
    (tmp_path / "secret").write_bytes(b"secret" * 1000)
    (tmp_path / "secret").chmod(0o644)
    (tmp_path / "image").write_bytes(qcow2(tmp_path, "-b", str(tmp_path / "secret"), "-F", "raw", size="1M"))
    assert await to_raw(tmp_path / "image", tmp_path / "raw", MIB)
    assert (tmp_path / "raw").read_bytes() == bytes(MIB)


def test_what_confines_it_needs_nothing_of_ours() -> None:
    """It runs without our packages, and before anything else."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({confined.__file__!r}, run_name='confined')"], check=False
    )
    assert done.returncode == 0
