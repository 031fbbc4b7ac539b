"""What server processes cost: their processor time and their memory, read from /proc."""

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(roots: Iterable[int]) -> set[int]:
    """Everything that the roots started, directly or not; the roots themselves are not among it."""
    parents = {process: parent for process in _processes() if (parent := _parent(process)) is not None}
    found: set[int] = set()
    level = set(roots)
    while level:
        level = {process for process, parent in parents.items() if parent in level} - found
        found |= level
    return found


def cpu_seconds(processes: Iterable[int]) -> float:
    """User and system time of these processes, and of children of theirs that have ended."""
    total = 0
    for process in processes:
        if fields := _stat(process):
            total += sum(int(value) for value in fields[11:15])
    return total / _TICKS


def resident_bytes(processes: Iterable[int]) -> int:
    """Memory in use. What processes share is counted for each of them: the sum errs on the large side."""
    return sum(int(fields[21]) for process in processes if (fields := _stat(process))) * _PAGE


def peak_bytes(processes: Iterable[int]) -> int:
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return total


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _parent(process: int) -> int | None:
    fields = _stat(process)
    return int(fields[1]) if fields else None


def _stat(process: int) -> list[str]:
    """The fields behind the name, which may itself hold blanks: index 0 is the state, field 3 of the manual page."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
