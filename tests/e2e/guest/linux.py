"""An initramfs from a busybox and one script, written as the kernel reads it."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

# What a kernel module says of itself: those that it needs.
_NEEDS = re.compile(rb"\0depends=([^\0]*)\0")
_DIRECTORY, _PROGRAM = 0o040755, 0o100755


def initramfs(busybox: Path, script: str, modules: Path | None = None) -> bytes:
    """The script is the first and only process. It finds the modules in /modules, and in /modules/order in which order each comes
    after those that it needs: that differs from kernel to kernel."""
    found = sorted(modules.iterdir()) if modules is not None else []
    init = "#!/bin/busybox sh\n" + script
    entries = [_entry(name, _DIRECTORY) for name in ("bin", "dev", "proc", "modules")]
    entries += [_entry(f"modules/{one.name}", _PROGRAM, one.read_bytes()) for one in found]
    entries.append(_entry("modules/order", _PROGRAM, "\n".join(in_order(found)).encode()))
    entries += [_entry("bin/busybox", _PROGRAM, busybox.read_bytes()), _entry("init", _PROGRAM, init.encode())]
    return b"".join([*entries, _entry("TRAILER!!!", 0)])


def in_order(modules: list[Path]) -> list[str]:
    needs = {one.name.removesuffix(".ko"): _needs(one.read_bytes()) for one in modules}
    return list(TopologicalSorter(needs).static_order())


def _needs(module: bytes) -> list[str]:
    found = _NEEDS.search(module)
    return [name for name in found[1].decode().split(",") if name] if found is not None else []


def _entry(name: str, mode: int, content: bytes = b"") -> bytes:
    """In the cpio format `newc`: a header of thirteen numbers in hexadecimal, the name, the content, each padded to four."""
    numbers = [_number(name), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
    header = b"070701" + b"".join(b"%08x" % number for number in numbers)
    return _padded(header + name.encode() + b"\0") + _padded(content)


def _number(name: str) -> int:
    return sum(name.encode()) + 1


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
