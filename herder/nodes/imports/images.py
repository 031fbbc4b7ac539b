"""What a file is: a raw disk, a qcow2 that stands on its own, or something that no guest can boot from."""

from __future__ import annotations

import struct
from pathlib import Path

from herder.api import reasons
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.runtimes.base import DiskFormat

QCOW2 = b"QFI\xfb"
HEADER = 512
# Beside the data: tables, which grow with it.
QCOW2_SHARE, QCOW2_MORE = 32, 16 * 1024 * 1024
# What QEMU itself would take, and no real image comes near to.
MOST_L1, MOST_REFCOUNTS, MOST_SNAPSHOTS = 32 * 1024**2, 8 * 1024**2, 256
_OTHERS = ((b"KDMV", "a VMDK"), (b"vhdxfile", "a VHDX"), (b"conectix", "a VHD"), (b"# Disk Descriptor", "a VMDK"))
_VDI, _VDI_AT = b"\x7f\x10\xda\xbe", 64


def format_of(head: bytes) -> DiskFormat:
    """From a source's first bytes, asked once, when it is imported. Raises ImportFailed for what is certainly no disk of ours."""
    if head.startswith(QCOW2):
        return "qcow2"
    for magic, name in (*_OTHERS, *(((_VDI, "a VDI"),) if head[_VDI_AT : _VDI_AT + 4] == _VDI else ())):
        if head.startswith(magic) or name == "a VDI":
            raise _no_image(f"it is {name}; convert it to qcow2 or raw, for example with qemu-img convert")
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise _no_image("it is a web page; the URL has to lead to the image itself")
    if not head:
        raise _no_image("it is empty")
    return "raw"


def limit_for(kind: DiskFormat, capacity: int) -> int:
    """How many bytes a file may have to fit."""
    return capacity if kind == "raw" else capacity + capacity // QCOW2_SHARE + QCOW2_MORE


def check_qcow2(path: Path, capacity: int) -> int:
    """The size of its disk. It must not lead to any other file: that would be one of ours."""
    with path.open("rb") as file:
        head = file.read(HEADER)
    if len(head) < 72:
        raise _no_image("it is a qcow2 whose header is cut short")
    version, backing = struct.unpack_from(">IQ", head, 4)
    (size,) = struct.unpack_from(">Q", head, 24)
    (features,) = struct.unpack_from(">Q", head, 72) if version >= 3 and len(head) >= 80 else (0,)
    if version not in (2, 3):
        raise _no_image(f"it is a qcow2 of version {version}; versions 2 and 3 can be read")
    if backing:
        raise _no_image("it is a qcow2 with a backing file; make it whole, for example with qemu-img convert")
    if features & 0b100:
        raise _no_image("it is a qcow2 with an external data file; make it whole, for example with qemu-img convert")
    if struct.unpack_from(">I", head, 32)[0]:
        raise _no_image("it is an encrypted qcow2; decrypt it first")
    _check_tables(head)
    if size > capacity:
        raise ImportFailed(reasons.VOLUME_TOO_SMALL, f"the image is a disk of {size} bytes, and the volume has {capacity}")
    return size


def _check_tables(head: bytes) -> None:
    (cluster,) = struct.unpack_from(">I", head, 20)
    (l1,) = struct.unpack_from(">I", head, 36)
    refcounts, snapshots = struct.unpack_from(">II", head, 56)
    if not 9 <= cluster <= 21:
        raise _no_image(f"it is a qcow2 with clusters of 2^{cluster} bytes; 2^9 to 2^21 can be read")
    if l1 * 8 > MOST_L1 or refcounts << cluster > MOST_REFCOUNTS or snapshots > MOST_SNAPSHOTS:
        tables = f"{l1} L1 entries, {refcounts} clusters of refcounts, {snapshots} snapshots"
        raise _no_image(f"it is a qcow2 whose tables are too large: {tables}")


def _no_image(why: str) -> ImportFailed:
    return ImportFailed(reasons.NOT_A_DISK_IMAGE, f"the source is not a disk image that can be used: {why}")
