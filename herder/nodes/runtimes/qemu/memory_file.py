"""Saved memory in a file: in its head what a guest has to be to go on from it, then QEMU's own stream.

The file has its name only while it is whole and nobody has used it. Whoever goes on from it renames it first, and that is on the
disk before a guest runs: memory is used once, whatever dies in between. Disks are known by their length and by when they were last
written: one that was used since then is not the one that the memory knows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from herder.api.guest import SavedGuest
from herder.nodes.runtimes.base import FilesVolume, FileVolume, Unfit, Volume
from herder.nodes.runtimes.qemu.files import sync_folder

HEAD = 65536
PART = ".part"
USED = ".used"
# (length, when it was last written, in nanoseconds)
DiskState = tuple[int, int]


class Head(msgspec.Struct, frozen=True, kw_only=True):
    guest: str  # uid of the pod whose guest it was
    instance: str  # namespace/name
    saved: SavedGuest
    # What QEMU takes for granted that a guest has as before, and never compares.
    shape: dict[str, str]
    # What small disks of files were made of: Secrets, ConfigMaps, cloud-init.
    files: dict[str, str]
    disks: dict[str, DiskState]


class MemoryFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(f"{path.name}{PART}")
        self.used = path.with_name(f"{path.name}{USED}")

    def create(self) -> int:
        """A place to write to. What was written before, and what nobody may use any more, makes room."""
        self.discard()
        return os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def publish(self, head: Head) -> None:
        """Whole, on the disk, and only then under its name."""
        descriptor = os.open(self.part, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            text = msgspec.json.encode(head)
            if len(text) > HEAD:
                raise OSError(f"what has to be known of the guest takes {len(text)} bytes, and there is room for {HEAD}")
            os.pwrite(descriptor, text.ljust(HEAD), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(self.part, self.path)
        sync_folder(self.path.parent)

    def head(self) -> Head:
        try:
            with self._open() as file:
                return msgspec.json.decode(file.read(HEAD), type=Head)
        except FileNotFoundError:
            why = "it was used before" if self.used.exists() else "it is not there"
            raise Unfit(f"the memory that was saved cannot be used: {why}") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise Unfit(f"the memory that was saved cannot be read: {error}") from None

    def use(self) -> None:
        """Durably: from here on nobody else goes on from it."""
        os.rename(self.path, self.used)
        sync_folder(self.path.parent)

    def hold_used(self) -> int | None:
        """It has no name any more afterwards; who lets go of it last, and gives its room back, is whoever has this."""
        try:
            descriptor = os.open(self.used, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        self.used.unlink(missing_ok=True)
        return descriptor

    def discard(self) -> None:
        """Durably: nobody ever goes on from it."""
        for path in (self.path, self.part, self.used):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        with contextlib.suppress(FileNotFoundError):
            sync_folder(self.path.parent)

    def _open(self) -> BinaryIO:
        return open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def files_of(volumes: Mapping[str, Volume]) -> dict[str, str]:
    """A digest of what each small disk is made of."""
    return {name: _digest(volume) for name, volume in sorted(volumes.items()) if isinstance(volume, FilesVolume)}


def _digest(volume: FilesVolume) -> str:
    found = hashlib.sha256(volume.label.encode())
    for name, content in sorted(volume.files.items()):
        found.update(b"\0".join((name.encode(), str(len(content)).encode(), content)))
    return found.hexdigest()


def paths_of(volumes: Mapping[str, Volume]) -> dict[str, str]:
    return {name: str(volume.path) for name, volume in sorted(volumes.items()) if isinstance(volume, FileVolume)}


def states_of(paths: Mapping[str, str]) -> dict[str, DiskState]:
    """Raises OSError where one is gone."""
    return {name: _state(path) for name, path in paths.items()}


def _state(path: str) -> DiskState:
    about = os.stat(path, follow_symlinks=False)
    return about.st_size, about.st_mtime_ns


def difference(head: Head, shape: Mapping[str, str], files: Mapping[str, str], disks: Mapping[str, DiskState]) -> str:
    """Why the guest is not the one that the memory was saved of; empty where it is."""
    if changed := _differ(head.shape, shape):
        return f"the machine is another one than when it was saved ({', '.join(changed)})"
    if changed := _differ(head.files, files):
        return f"what volume {', '.join(changed)} is made of has changed since it was saved"
    if changed := _differ(head.disks, disks):
        return f"the disk of volume {', '.join(changed)} was changed or written since it was saved"
    return ""


def _differ(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
