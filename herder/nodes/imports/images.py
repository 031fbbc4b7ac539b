"""What a file is: a raw disk, a qcow2 that stands on its own, or something that no guest can boot from."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import shutil
import struct
from pathlib import Path

from herder.api import reasons
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.runtimes.base import DiskFormat

QCOW2 = b"QFI\xfb"
HEADER = 512
# Beside the data: tables, which grow with it.
QCOW2_SHARE, QCOW2_MORE = 32, 16 * 1024 * 1024
# A hostile image must not take the memory of the machine.
CONVERTER_MEMORY = 2 * 1024**3
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


def check_qcow2(path: Path, capacity: int) -> None:
    """It must not lead to any other file: that would be one of ours."""
    head = path.open("rb").read(HEADER)
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
    if size > capacity:
        raise ImportFailed(reasons.VOLUME_TOO_SMALL, f"the image is a disk of {size} bytes, and the volume has {capacity}")


def _no_image(why: str) -> ImportFailed:
    return ImportFailed(reasons.NOT_A_DISK_IMAGE, f"the source is not a disk image that can be used: {why}")


async def to_raw(path: Path, target: Path) -> bool:
    """False where there is nobody to do it: a qcow2 can be booted from as well."""
    program = shutil.which("qemu-img")
    if program is None:
        return False
    arguments = ["convert", "-f", "qcow2", "-O", "raw", "--", str(path), str(target)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *arguments, stdout=pipe, stderr=pipe, stdin=asyncio.subprocess.DEVNULL)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (CONVERTER_MEMORY, CONVERTER_MEMORY))
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise _no_image(f"qemu-img could not read it: {errors.decode(errors='replace').strip()[-500:]}")
    return True
