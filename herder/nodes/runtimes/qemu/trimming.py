"""Logs of guests, which never end writing: of each the newest is kept, and what is older gives its place on the disk back.

The beginning becomes a hole in the file. So nothing moves: QEMU appends to the same file, and whoever reads along goes on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

log = structlog.get_logger()
# At least so much of each log is kept, and at most twice that, beside what is written between two looks.
KEPT = 16 << 20
LOOK_EVERY = 10.0
BLOCK = 4096
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


async def keep_short(logs: Callable[[], Iterable[Path]]) -> None:
    """For as long as it is let."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        for path in logs():
            try:
                trim(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                log.warning("a log cannot be shortened", path=str(path), error=error.strerror or str(error))


def trim(path: Path, kept: int = KEPT) -> None:
    """By what is on the disk, and not by the size, which goes on growing."""
    if path.stat().st_blocks * 512 <= 2 * kept:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        end = (os.fstat(descriptor).st_size - kept) // BLOCK * BLOCK
        if end > 0 and _LIBC.fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, 0, end) < 0:
            _start_over(descriptor, ctypes.get_errno())
    finally:
        os.close(descriptor)


def _start_over(descriptor: int, number: int) -> None:
    """Where the filesystem makes no holes, all of it goes: a full disk would be worse."""
    if number != errno.EOPNOTSUPP:
        raise OSError(number, os.strerror(number))
    os.ftruncate(descriptor, 0)


def read_kept(descriptor: int, size: int) -> bytes:
    """The next piece, without the hole; nothing at the end. Whoever is too slow misses what is gone by then."""
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    if place > os.fstat(descriptor).st_size:
        place = os.lseek(descriptor, 0, os.SEEK_SET)  # it was started over
    begin = place
    with contextlib.suppress(OSError):  # at the end there is nothing to be found
        begin = os.lseek(descriptor, place, os.SEEK_DATA)
    piece = os.read(descriptor, size)
    # Whole lines only, where it goes on further down.
    return piece if begin == place else piece.partition(b"\n")[2]
