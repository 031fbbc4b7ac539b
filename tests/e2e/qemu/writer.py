"""A guest of one sector, started from its own disk: it writes to that disk by way of the firmware, and says so on its console.

The tiny guest knows no disks. This one fits the boot sector of a raw disk, so a test puts it there and gives the disk to a machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from herder.nodes.runtimes.base import Order, Volume
from tests.e2e.qemu.node import order

SECTOR = 512
# `wrote` once all of it is written. HEADER: what is in the second sector goes into the first, over this very program. FILL: all
# of the disk from the third sector on, 64 sectors at a time, with a dot for each.
_PROGRAM = """
.code16
.globl _start
_start:
    xor %ax, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov $0x7c00, %sp
    mov %dl, drive
    mov $from, %si
    mov $0x42, %ah
    call disk
    jc failed
again:
    mov $to, %si
    mov $0x4300, %ax
    call disk
    jc failed
.ifdef FILL
    mov $'.', %al
    call say
    mov to_sector, %eax
    add $64, %eax
    mov %eax, to_sector
    cmp $FILL, %eax
    jb again
.endif
    mov $wrote, %si
    call line
stop:
    hlt
    jmp stop
failed:
    mov $error, %si
    call line
    jmp stop
disk:
    mov drive, %dl
    int $0x13
    ret
line:
    lodsb
    test %al, %al
    jz done
    call say
    jmp line
done:
    ret
say:
    push %ax
    mov $0x3fd, %dx
wait:
    in %dx, %al
    test $0x20, %al
    jz wait
    pop %ax
    mov $0x3f8, %dx
    out %al, %dx
    ret
wrote: .asciz "wrote\\r\\n"
error: .asciz "error\\r\\n"
drive: .byte 0
.balign 4
from: .byte 16, 0
    .word 1, 0x8000, 0
    .quad 1
to: .byte 16, 0
.ifdef FILL
    .word 64, 0x8000, 0
to_sector: .quad 2
.else
    .word 1, 0x8000, 0
to_sector: .quad 0
.endif
.org 510
.word 0xaa55
"""


def put_on(disk: Path, folder: Path, *, second: bytes = b"", fill: bool = False) -> None:
    """Makes a raw disk bootable. `second` is what its second sector holds."""
    source, made, image = folder / "writer.s", folder / "writer.o", folder / "writer.bin"
    source.write_text(_PROGRAM)
    settings = ["--defsym", f"FILL={disk.stat().st_size // SECTOR - 64}"] if fill else []
    subprocess.run(["as", "--32", *settings, "-o", made, source], check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary", "-o", image, made], check=True)
    with disk.open("r+b") as file:
        file.write(image.read_bytes() + second.ljust(SECTOR, b"\0"))


def writer(volumes: dict[str, Volume], **about: Any) -> Order:
    """A machine that starts from its first disk."""
    disks = {"disks": [{"name": name} for name in volumes]}
    domain = {"firmware": {}, "devices": {**disks, "interfaces": []}, **about.pop("domain", {})}
    return order(Path("/nonexistent"), volumes=volumes, domain=domain, **about)
