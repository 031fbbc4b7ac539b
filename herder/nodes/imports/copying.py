"""Copies a disk: shared where the file system can do that, else only what is there, and holes stay holes."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

FICLONE = 0x40049409
PIECE = 16 * 1024 * 1024
Told = Callable[[int, int], None]


class Stopped(Exception):
    """Whoever asked for the copy does not want it any more."""


def copy_disk(source: Path, target: Path, told: Told, stop: threading.Event, check: Callable[[], None] = lambda: None) -> None:
    """Blocking. `told(done, total)` is called between pieces, from this thread. `check` is asked before anything is written that
    takes room, and raises where it may not."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        writing = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            _copy(reading, writing, told, stop, check)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy(reading: int, writing: int, told: Told, stop: threading.Event, check: Callable[[], None]) -> None:
    size = os.fstat(reading).st_size
    if _shared(reading, writing):
        told(size, size)
        return
    check()
    os.ftruncate(writing, size)
    for start, end in _data(reading, size):
        at = start
        while at < end:
            if stop.is_set():
                raise Stopped
            at += _piece(reading, writing, at, min(PIECE, end - at))
            told(at, size)
    told(size, size)


def _shared(reading: int, writing: int) -> bool:
    try:
        fcntl.ioctl(writing, FICLONE, reading)
    except OSError:
        return False
    return True


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        at = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, at


def _piece(reading: int, writing: int, at: int, count: int) -> int:
    try:
        copied = os.copy_file_range(reading, writing, count, at, at)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        copied = os.pwrite(writing, os.pread(reading, min(count, 1024 * 1024), at), at)
    if copied == 0:
        raise OSError(errno.EIO, "the source became shorter while it was copied")
    return copied
