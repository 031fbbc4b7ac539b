"""Builds the guest from its sources, once, and prints where it is: `python -m tools.guest.build`.

The folder is keyed by the sources and this file, so another guest is another folder and nothing stale is ever used.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_FLAGS = [
    *("-m32", "-march=i686", "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror"),
    *("-ffreestanding", "-fno-pic", "-fno-pie", "-fno-stack-protector", "-fno-strict-aliasing", "-fcf-protection=none"),
    *("-mgeneral-regs-only", "-fno-asynchronous-unwind-tables", "-fno-delete-null-pointer-checks"),
    "-fno-tree-loop-distribute-patterns",  # or a loop that copies becomes a call of memcpy, which is not here
    *("-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,--no-warn-rwx-segments", "-s"),
]


class BuildError(Exception):
    """Says why there is no guest."""


def build() -> Path:
    """The guest's ELF file. Two builds at once are two builds of the same bytes: the last one wins."""
    guest = _cache() / f"guest-{_key()}" / "guest.elf"
    if not guest.exists():
        guest.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=guest.parent) as work:
            _compile(Path(work) / "guest.elf")
            os.replace(Path(work) / "guest.elf", guest)  # whole or not at all
    return guest


def build_linux(kernel: Path, initrd: Path, target: Path) -> Path:
    """A Linux with its initial RAM disk as one file, to be booted as the guest is: a volume has room for one file only."""
    files = [f'-DKERNEL="{kernel}"', f'-DINITRD="{initrd}"']
    _compile(target, _HERE / "linux", *files)
    return target


def _compile(target: Path, folder: Path = _HERE, *options: str) -> None:
    sources = [str(path) for path in _sources(folder) if path.suffix in {".c", ".S"}]
    (script,) = folder.glob("*.ld")
    compiler = os.environ.get("CC", "gcc")
    command = [compiler, *_FLAGS, *options, f"-Wl,-T,{script}", "-o", str(target), *sources]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"the guest is built with {compiler}, which is not here; install gcc") from None
    if done.returncode:
        raise BuildError(f"the guest was not built:\n{done.stderr}")


def _sources(folder: Path = _HERE) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in {".c", ".h", ".S", ".ld"})


def _key() -> str:
    digest = hashlib.sha256()
    for path in [*_sources(), Path(__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "herder"


if __name__ == "__main__":
    try:
        print(build())
    except BuildError as problem:
        sys.exit(str(problem))
