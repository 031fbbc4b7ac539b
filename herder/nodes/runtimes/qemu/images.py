"""Disk images: opened in the format that was recorded of them; empty ones; those that hold a few files."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from pathlib import Path

from herder.api import reasons
from herder.nodes.runtimes.base import DiskFormat, EmptyVolume, FilesVolume, FileVolume, Refused
from herder.nodes.runtimes.qemu.blueprint import DiskPlan
from herder.nodes.runtimes.qemu.command import Image
from herder.nodes.runtimes.qemu.files import writing_whole
from herder.nodes.runtimes.qemu.iso import iso_image
from herder.nodes.runtimes.qemu.record import Folder

QCOW2 = b"QFI\xfb"
# In a claim that is a folder, its disk has this name, as in KubeVirt.
DISK_IN_FOLDER = "disk.img"
_INCOMPATIBLE_DATA_FILE = 1 << 2
_SECTOR = 512


def open_image(volume: FileVolume | EmptyVolume | FilesVolume, disk: DiskPlan, folder: Folder) -> Image:
    """Raises `Refused` where it is none that a guest may have."""
    if isinstance(volume, EmptyVolume):
        path = folder / f"empty-{disk.volume}.img"
        _make_empty(path, volume.capacity)
        return _opened(path, disk, "raw", read_only=disk.read_only)
    if isinstance(volume, FilesVolume):
        path = folder / f"files-{disk.volume}.iso"
        with writing_whole(path, durable=False) as file:
            file.write(_iso(volume, disk.volume))
        return _opened(path, disk, "raw", read_only=True)
    path = volume.path / DISK_IN_FOLDER if volume.path.is_dir() else volume.path
    return _opened(path, disk, volume.format, read_only=volume.read_only or disk.read_only)


def _make_empty(path: Path, capacity: int) -> None:
    """A sparse file: room is taken as the guest writes."""
    with writing_whole(path, durable=False) as file:
        file.truncate(-(-capacity // _SECTOR) * _SECTOR)


def _iso(volume: FilesVolume, name: str) -> bytes:
    try:
        return iso_image(volume.files, volume.label)
    except ValueError as error:
        raise Refused(reasons.UNSUPPORTED, f"volume {name}: {error}") from None


def _opened(path: Path, disk: DiskPlan, kind: DiskFormat, *, read_only: bool) -> Image:
    flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise Refused(reasons.UNSUPPORTED, f"volume {disk.volume}: its image cannot be opened: {error.strerror}") from None
    try:
        _check(descriptor, kind, disk.volume)
        direct = disk.cache == "none" and _direct(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return Image(descriptor=descriptor, format=kind, read_only=read_only, direct=direct)


def _direct(descriptor: int) -> bool:
    """QEMU wants the flag to be set already. A file system without it caches, whatever one asks for."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL) & ~os.O_NONBLOCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
    except OSError:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
        return False
    return True


def _check(descriptor: int, kind: DiskFormat, volume: str) -> None:
    """Nothing in the file decides what it is: that was recorded when the volume was made. A raw disk may begin with anything at
    all. A qcow2 must be one, and must not name another file: through it the guest's owner would read files of the node."""
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
        raise Refused(reasons.NOT_A_DISK_IMAGE, f"volume {volume}: its image is neither a file nor a block device")
    if kind == "qcow2":
        _check_qcow2(os.pread(descriptor, 104, 0), volume)


def _check_qcow2(head: bytes, volume: str) -> None:
    if head[:4] != QCOW2:
        raise Refused(reasons.NOT_A_DISK_IMAGE, f"volume {volume}: its image was recorded as qcow2, and is none")
    if len(head) < 72:
        raise Refused(reasons.NOT_A_DISK_IMAGE, f"volume {volume}: its image is a qcow2 that ends in its header")
    version, backing = struct.unpack(">IQ", head[4:16])
    if version not in (2, 3):
        raise Refused(reasons.NOT_A_DISK_IMAGE, f"volume {volume}: its image is a qcow2 of version {version}; 2 and 3 are known")
    if backing:
        raise Refused(reasons.SOURCE_FORBIDDEN, f"volume {volume}: its image is a qcow2 with a backing file, which is not allowed")
    if version == 3 and struct.unpack(">Q", head[72:80])[0] & _INCOMPATIBLE_DATA_FILE:
        raise Refused(reasons.SOURCE_FORBIDDEN, f"volume {volume}: its image is a qcow2 with a data file, which is not allowed")
