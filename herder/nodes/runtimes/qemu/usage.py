"""What a guest takes of its node: what the kernel counts for QEMU's process, or for its cgroup where it has one to itself."""

from __future__ import annotations

import os
from pathlib import Path

from herder.nodes.runtimes.base import Usage

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
TICKS = os.sysconf("SC_CLK_TCK")
# The kernel's files are short; of one that is not, nobody needs more.
LONGEST = 64 * 1024


def usage_of(pid: int, proc: Path = PROC, cgroups: Path = CGROUPS) -> Usage | None:
    """None for a process that is gone. Not for one whose number may be another's: whoever asks holds on to it."""
    try:
        own = _own_cgroup(pid, proc, cgroups)
        return _of_cgroup(own) if own is not None else _of_process(proc / str(pid))
    except (OSError, ValueError, LookupError):
        return None


def _of_process(folder: Path) -> Usage:
    fields = _read(folder / "stat").rpartition(")")[2].split()
    sizes = _table(folder / "status", ":")
    # Pages of programs and libraries can be read again from their files: they are in nobody's way.
    kept = sum(int(sizes[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    return Usage((int(fields[11]) + int(fields[12])) / TICKS, kept * 1024)


def _own_cgroup(pid: int, proc: Path, cgroups: Path) -> Path | None:
    """Only of version 2, and only where nobody else is in it: what several share says nothing of one."""
    line = next((line for line in _read(proc / str(pid) / "cgroup").splitlines() if line.startswith("0::")), "")
    folder = cgroups / line.removeprefix("0::").lstrip("/")
    alone = (folder / "memory.current").exists() and _read(folder / "cgroup.procs").split() == [str(pid)]
    return folder if line and alone else None


def _of_cgroup(folder: Path) -> Usage:
    """As a kubelet reckons: without the part of the page cache that has not been used of late."""
    cpu, memory = _table(folder / "cpu.stat", " "), _table(folder / "memory.stat", " ")
    held = int(_read(folder / "memory.current")) - int(memory["inactive_file"])
    return Usage(int(cpu["usage_usec"]) / 1e6, max(0, held))


def _table(file: Path, separator: str) -> dict[str, str]:
    rows = (line.partition(separator) for line in _read(file).splitlines())
    return {name: value.strip() for name, _, value in rows}


def _read(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.read(LONGEST)
