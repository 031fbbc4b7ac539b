"""The storage folder of a node: one folder for each volume, in it `disk.img`, which is there only when it is whole.

What is being written has another name. Nothing outside the folder is ever touched: names are checked, and links are not followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from herder.api import reasons
from herder.nodes.imports.failure import ImportFailed

DISK = "disk.img"
PART = ".part"
_NAME = re.compile(r"pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class StorageFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def disk(self, volume: str) -> Path:
        """Where the disk of this PersistentVolume is, or will be."""
        return self._folder(volume) / DISK

    def is_filled(self, volume: str) -> bool:
        return self.disk(volume).is_file() and not self.disk(volume).is_symlink()

    def prepare(self, volume: str) -> Path:
        """An empty place to write to. What an earlier try has left is removed."""
        folder = self._folder(volume)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if folder.is_symlink() or not folder.is_dir():
            raise ImportFailed(reasons.IMPORT_FAILED, f"{volume} in the storage folder is not a folder")
        self.discard(volume)
        return folder / f"{DISK}{PART}"

    def discard(self, volume: str) -> None:
        """What is not whole."""
        for left in self._folder(volume).glob(f"*{PART}"):
            left.unlink()

    def finish(self, volume: str, written: Path) -> None:
        """On the disk first, then visible under its name, and that on the disk, too."""
        _sync(written, os.O_RDWR)
        os.rename(written, self.disk(volume))
        _sync(self._folder(volume), os.O_RDONLY)
        self.discard(volume)

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
