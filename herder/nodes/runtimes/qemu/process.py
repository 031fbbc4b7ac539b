"""QEMU's process: started apart from the agent, known by more than its number, watched without asking again and again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from herder.nodes.runtimes.qemu.record import ProcessRecord

PROC = Path("/proc")
# No core dumps (they hold the guest's memory), and no more open files than disks and sockets can need. Set by a shell that becomes
# QEMU: QEMU takes as much as it may, and from outside one would need a right that not even root has everywhere.
MOST_FILES = 4096
_LIMITED = ("sh", "-c", f'ulimit -c 0; ulimit -n {MOST_FILES} 2>/dev/null; exec "$@"', "sh")
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


class RunAs(msgspec.Struct, frozen=True):
    """An unprivileged user for QEMU, where the agent is root."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Process:
    """One QEMU, ours by birth or found again after a crash."""

    def __init__(self, pid: int, child: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self.exit_code: int | None = None
        self._child = child
        self._pidfd = os.pidfd_open(pid)
        self.ended = asyncio.Event()
        self._watchers: list[Callable[[], None]] = []
        asyncio.get_running_loop().add_reader(self._pidfd, self._has_ended)

    def on_end(self, call: Callable[[], None]) -> None:
        self._watchers.append(call)

    def kill(self) -> None:
        """By the descriptor: never another process that has the number meanwhile."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def wait(self, patience: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.ended.wait()
        return self.ended.is_set()

    def leave(self) -> None:
        """We look no longer; it runs on."""
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._child is not None:
            # It is not waited for by us: whoever inherits it does that.
            self._child.returncode = 0

    def _has_ended(self) -> None:
        if self._child is not None:
            self.exit_code = self._child.wait()
            self._child = None
        self.leave()
        self.ended.set()
        for watcher in self._watchers:
            watcher()


def start(
    command: Sequence[str], folder: Path, log: int, descriptors: Sequence[int], run_as: RunAs | None, timezone: str = ""
) -> subprocess.Popen[bytes]:
    """In a session of its own, so that what ends the agent does not end it. Its current folder tells whose it is."""
    other = run_as if run_as is not None and not can_become(run_as) else None
    return subprocess.Popen(
        [*_LIMITED, *(becoming(run_as) if run_as is not None and other is None else ()), *command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=descriptors,
        start_new_session=True,
        env=_ENVIRONMENT | ({"TZ": timezone} if timezone else {}),
        user=other.uid if other else None,
        group=other.gid if other else None,
        extra_groups=list(other.groups) if other else None,
    )


def becoming(run_as: RunAs) -> list[str]:
    """A program that becomes that user and then the one that follows. To do that ourselves we would have to fork, which copies the
    tables of all our memory and makes us touch each page of it anew: more than all else that a start costs us."""
    groups = f"--groups={','.join(map(str, run_as.groups))}" if run_as.groups else "--clear-groups"
    return ["setpriv", f"--reuid={run_as.uid}", f"--regid={run_as.gid}", groups, "--no-new-privs", "--"]


@functools.cache
def can_become(run_as: RunAs) -> bool:
    """Not every system has it, and some have one that knows less."""
    try:
        return not subprocess.run([*becoming(run_as), "true"], env=_ENVIRONMENT, capture_output=True, check=False).returncode
    except OSError:
        return False


def describe(pid: int) -> ProcessRecord | None:
    started = start_time(pid)
    return None if started is None else ProcessRecord(pid=pid, start_time=started, boot_id=boot_id())


def start_time(pid: int) -> int | None:
    """In ticks since the machine started; None for one that is gone, or has ended and is only not yet fetched."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def same(record: ProcessRecord) -> bool:
    return record.boot_id == boot_id() and start_time(record.pid) == record.start_time


def find_by_folder(folders: Iterable[Path]) -> dict[Path, int]:
    """Processes whose current folder is one of these: the way to one whose agent died before it could write down its number."""
    wanted = {os.path.realpath(folder): folder for folder in folders}
    found: dict[Path, int] = {}
    for entry in os.scandir(PROC) if wanted else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                folder = wanted.get(os.readlink(f"{entry.path}/cwd"))
                if folder is not None and start_time(int(entry.name)) is not None:
                    found[folder] = int(entry.name)
    return found
