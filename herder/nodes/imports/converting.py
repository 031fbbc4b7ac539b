"""Makes a raw disk of a qcow2 that anybody may have sent: by `qemu-img`, as unprivileged and confined as a guest, and in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.nodes.imports import confined
from herder.nodes.imports.failure import ImportFailed

PROGRAM = "qemu-img"
LAUNCHER = str(Path(confined.__file__))
# Each of its threads would reserve room for memory of its own, which counts.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "MALLOC_ARENA_MAX": "2"}
_SECTOR = 512
_TABLES = 1024
_TAIL = 500
LOOK_EVERY = 0.2


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of one conversion. A slow disk takes 16 MiB a second; whoever takes longer is not converting."""

    memory: int = 2 * 1024**3
    open_files: int = 64
    seconds: float = 300.0
    bytes_per_second: int = 16 * 1024**2

    def patience(self, size: int) -> float:
        return self.seconds + size / self.bytes_per_second


LIMITS = Limits()


async def to_raw(path: Path, target: Path, size: int, check: Callable[[], None] = lambda: None, limits: Limits = LIMITS) -> bool:
    """`size` is that of the disk. False where there is nobody to do it: a qcow2 can be booted from as well. `check` is asked now
    and then whether it may go on, and raises where not."""
    program = shutil.which(PROGRAM)
    if program is None:
        return False
    with contextlib.ExitStack() as opened:
        source = _lent(path, os.O_RDONLY, opened)
        raw = _lent(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, opened)
        os.ftruncate(raw, -(-size // _SECTOR) * _SECTOR)
        process = await _start([program, *_arguments(source, raw)], (source, raw), size, limits)
        try:
            complaint = await _ended(process, limits.patience(size), check)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise _failed(f"qemu-img could not read it: {complaint or death(process.returncode)}")
    return True


async def grow_qcow2(path: Path, size: int, limits: Limits = LIMITS) -> bool:
    """A disk that nobody has open: QEMU's locks see to that, too. False where there is nobody to do it. Raises ImportFailed."""
    program = shutil.which(PROGRAM)
    if program is None:
        return False
    with contextlib.ExitStack() as opened:
        disk = _lent(path, os.O_RDWR, opened)
        # What is written are tables: an entry of 8 bytes for each 32 MiB of the disk, with the smallest clusters for each 32 KiB.
        room = os.fstat(disk).st_size + size // _TABLES + _SECTOR
        command = [program, "resize", "-f", "qcow2", "--", f"/proc/self/fd/{disk}", str(size)]
        process = await _start(command, (disk,), room, limits)
        try:
            complaint = await _ended(process, limits.seconds, lambda: None)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        why = complaint or death(process.returncode)
        raise ImportFailed(reasons.IMPORT_FAILED, f"qemu-img could not make the disk larger: {why}")
    return True


def _arguments(source: int, target: int) -> list[str]:
    """The format is said, as it always is, and that there is no backing file, whatever the header says."""
    file = {"driver": "file", "filename": f"/proc/self/fd/{source}"}
    image = {"driver": "qcow2", "backing": None, "read-only": True, "file": file}
    given = f"json:{msgspec.json.encode(image).decode()}"
    return ["convert", "-n", "--target-is-zero", "-O", "raw", "--", given, f"/proc/self/fd/{target}"]


def _lent(path: Path, flags: int, opened: contextlib.ExitStack) -> int:
    """Open, and of the other user for as long: it opens the file once more by its descriptor, as it cannot enter the folder."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    opened.callback(os.close, descriptor)
    user = _user()
    if user is not None:
        os.fchown(descriptor, user.pw_uid, user.pw_gid)
        opened.callback(os.fchown, descriptor, os.geteuid(), os.getegid())
    return descriptor


def _user() -> pwd.struct_passwd | None:
    """As guests: where we are root it is nobody."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def settings_for(**limits: int) -> dict[str, int]:
    """What confined.py is told: whose it shall be, of whom it is a child, and what it may take."""
    user = _user()
    whose = {"uid": user.pw_uid, "gid": user.pw_gid} if user is not None else {"uid": -1, "gid": -1}
    return {**whose, "parent": os.getpid(), **limits}


async def _start(command: list[str], inside: tuple[int, ...], size: int, limits: Limits) -> asyncio.subprocess.Process:
    settings = settings_for(
        memory=limits.memory,
        cpu_seconds=int(limits.patience(size)) + 1,
        file_size=size + _SECTOR,
        open_files=limits.open_files,
    )
    about = msgspec.json.encode({"settings": settings, "inside": inside}).decode()
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", LAUNCHER, about, *command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=inside,
        cwd="/",
        env=ENVIRONMENT,
        start_new_session=True,
    )


async def _ended(process: asyncio.subprocess.Process, patience: float, check: Callable[[], None]) -> str:
    """The end of what it complained about."""
    assert process.stderr is not None, "it was asked for"
    end, complaint = asyncio.get_running_loop().time() + patience, b""
    reading = asyncio.create_task(process.stderr.read(_TAIL))
    try:
        while True:
            await asyncio.wait([reading], timeout=LOOK_EVERY)
            check()
            if asyncio.get_running_loop().time() >= end:
                raise _failed(f"qemu-img was not done with it after {patience:.0f} s, and was ended")
            if reading.done():
                if not (said := reading.result()):
                    break
                complaint = (complaint + said)[-_TAIL:]
                reading = asyncio.create_task(process.stderr.read(_TAIL))
    finally:
        reading.cancel()
    await process.wait()
    return complaint.decode(errors="replace").strip()


def death(code: int) -> str:
    return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"


def _failed(why: str) -> ImportFailed:
    return ImportFailed(reasons.NOT_A_DISK_IMAGE, f"the source is not a disk image that can be used: {why}")
