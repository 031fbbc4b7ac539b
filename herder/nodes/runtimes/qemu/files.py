"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    with writing_whole(path, durable=durable) as file:
        file.write(data)


@contextlib.contextmanager
def writing_whole(path: Path, *, durable: bool = True) -> Generator[BinaryIO]:
    """Under another name until it is complete. Durable: it is there after a power failure as well."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        with open(os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
