"""The storage folder of a node: one folder for each volume, in it `disk.img`, which is there only when it is whole.

What is being written has another name. Nothing outside the folder is ever touched: names are checked, and links are not followed.
Beside it `volume.json` says in which format the disk is. It is written before the disk is there, by us alone, and no guest can
reach it: what a guest writes into its disk never decides how that is read.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.nodes.disk_space import DiskSpace
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.images import QCOW2
from herder.nodes.runtimes.base import DiskFormat
from herder.nodes.runtimes.qemu.files import write_whole

DISK = "disk.img"
RECORD = "volume.json"
MEMORY = "memory"
PART = ".part"
_making = threading.Lock()
_NAME = re.compile(r"pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class VolumeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    format: DiskFormat
    # All its room was taken when it was filled: what it grows by is taken at once, too.
    preallocated: bool = False


class StorageFolder:
    def __init__(self, root: Path, space: DiskSpace | None = None) -> None:
        self.root = root
        self.space = space or DiskSpace(root)

    def disk(self, volume: str) -> Path:
        """Where the disk of this PersistentVolume is, or will be."""
        return self._folder(volume) / DISK

    def memory(self, volume: str) -> Path:
        """Where the memory of a guest is, or will be, that is saved into this volume. No guest has it for a disk."""
        return self._folder(volume) / MEMORY

    def make_folder(self, volume: str) -> None:
        folder = self._folder(volume)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if folder.is_symlink() or not folder.is_dir():
            raise ImportFailed(reasons.IMPORT_FAILED, f"{volume} in the storage folder is not a folder")

    def is_filled(self, volume: str) -> bool:
        return self.disk(volume).is_file() and not self.disk(volume).is_symlink()

    def prepare(self, volume: str) -> Path:
        """An empty place to write to. What an earlier try has left is removed."""
        self.make_folder(volume)
        self.discard(volume)
        return self._folder(volume) / f"{DISK}{PART}"

    def discard(self, volume: str) -> None:
        """What is not whole."""
        for left in self._folder(volume).glob(f"*{PART}"):
            left.unlink()

    def format_of(self, volume: str) -> DiskFormat:
        return self.record_of(volume).format

    def record_of(self, volume: str) -> VolumeRecord:
        """As it was decided when the volume was filled."""
        try:
            return msgspec.json.decode((self._folder(volume) / RECORD).read_bytes(), type=VolumeRecord)
        except FileNotFoundError:
            return self._recorded_late(volume)
        except (OSError, msgspec.MsgspecError) as error:
            why = f"{volume}/{RECORD} in the storage folder, which says whether its disk is raw or qcow2, cannot be read: {error}"
            raise ImportFailed(reasons.VOLUME_RECORD_UNREADABLE, f'{why}. Mend it, for example with {{"format":"raw"}}') from None

    def _recorded_late(self, volume: str) -> VolumeRecord:
        """A volume from before formats were recorded. One that does not begin as a qcow2 is raw, for good from now on. One that
        does was imported as that, or a guest has written it there: nobody can tell by looking, so we do not decide it."""
        with open(os.open(self.disk(volume), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            head = file.read(len(QCOW2))
        if head == QCOW2:
            why = f"{volume} was filled before formats were recorded, and begins as a qcow2: imported so, or written by a guest"
            how = f'{{"format":"raw"}} or {{"format":"qcow2"}} in {volume}/{RECORD}'
            raise ImportFailed(reasons.VOLUME_FORMAT_UNKNOWN, f"{why}. Say which it is: {how}")
        return self._record(volume, VolumeRecord("raw"))

    def _record(self, volume: str, record: VolumeRecord) -> VolumeRecord:
        write_whole(self._folder(volume) / RECORD, msgspec.json.encode(record))
        return record

    def finish(self, volume: str, written: Path, kind: DiskFormat, *, preallocated: bool = False) -> None:
        """On the disk first, then its record, then visible under its name, and that on the disk, too."""
        _sync(written, os.O_RDWR)
        self._record(volume, VolumeRecord(kind, preallocated))
        os.rename(written, self.disk(volume))
        _sync(self._folder(volume), os.O_RDONLY)
        self.discard(volume)

    def make_blank(self, volume: str, size: int) -> None:
        """An empty disk, unless it has one. The guest that uses it first may come at the moment in which it is to grow: whoever is
        first makes it, and the other one finds it."""
        with _making:
            if self.is_filled(volume):
                return
            part = self.prepare(volume)
            with part.open("xb") as file:
                file.truncate(size)
            self.finish(volume, part, "raw")

    def remove(self, volume: str) -> None:
        folder = self._folder(volume)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
            _sync(self.root, os.O_RDONLY)

    def _folder(self, volume: str) -> Path:
        if not _NAME.fullmatch(volume):
            raise ImportFailed(reasons.IMPORT_FAILED, f"{volume!r} is no name of a volume of ours, such as pvc-<uid of the claim>")
        return self.root / volume


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
