"""Fills one volume: fetched, blank or copied, and under its final name only when it is whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from io import RawIOBase
from pathlib import Path

from herder.api import reasons
from herder.api.imports import ImportDefinition
from herder.nodes.disk_space import allocated
from herder.nodes.imports.converting import to_raw
from herder.nodes.imports.copying import copy_disk
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.fetching import Fetch, Request
from herder.nodes.imports.folder import StorageFolder
from herder.nodes.imports.images import HEADER, check_qcow2, format_of, limit_for
from herder.nodes.runtimes.base import DiskFormat

Told = Callable[[int, int], None]


async def fill(folder: StorageFolder, definition: ImportDefinition, request: Request | None, allow_local: bool, told: Told) -> None:
    if definition.action == "delete":
        await asyncio.to_thread(folder.remove, definition.volume)
        return
    if folder.is_filled(definition.volume):
        # Done before, by one who could not say so any more. A guest may have written to it since.
        told(1, 1)
        return
    part = await asyncio.to_thread(folder.prepare, definition.volume)
    try:
        _check_room(folder.space.never_fits(definition.capacity) or folder.space.lack())
        await _fill(folder, definition, request, allow_local, told, part)
    except BaseException:
        # Also where we are cancelled, or have a bug: no part is left behind. Nothing is swallowed.
        folder.discard(definition.volume)
        raise


async def _fill(
    folder: StorageFolder, definition: ImportDefinition, request: Request | None, allow_local: bool, told: Told, part: Path
) -> None:
    kind: DiskFormat = "raw"
    if definition.action == "clone":
        kind = await _copy(folder, definition, part, told)
    elif request is not None:
        part, kind = await _fetch(folder, part, definition, Fetch(request, allow_local, told))
    else:
        part.touch(mode=0o600)
    if kind == "raw":
        if definition.preallocate:
            _check_room(folder.space.lack(definition.capacity - allocated(part), file=part))
        with folder.space.writing(part, definition.capacity if definition.preallocate else 0):
            await asyncio.to_thread(_size, part, definition)
    preallocated = kind == "raw" and definition.preallocate
    await asyncio.to_thread(folder.finish, definition.volume, part, kind, preallocated=preallocated)


def _size(part: Path, definition: ImportDefinition) -> None:
    """As large as the volume: what is beyond the content is a hole, unless all room is to be taken at once."""
    with part.open("r+b") as file:
        os.ftruncate(file.fileno(), max(definition.capacity, os.fstat(file.fileno()).st_size))
        if definition.preallocate and definition.capacity:
            os.posix_fallocate(file.fileno(), 0, definition.capacity)


async def _copy(folder: StorageFolder, definition: ImportDefinition, part: Path, told: Told) -> DiskFormat:
    """In the format of its source, whatever a guest has written there since."""
    if not folder.is_filled(definition.source):
        raise ImportFailed(
            reasons.CLONE_FAILED, f"volume {definition.source} has no content on this node, so there is nothing to copy"
        )
    kind = await asyncio.to_thread(folder.format_of, definition.source)
    loop, stop, source = asyncio.get_running_loop(), threading.Event(), folder.disk(definition.source)

    def told_from_thread(done: int, total: int) -> None:
        _check_room(folder.space.lack(file=part))
        loop.call_soon_threadsafe(told, done, total)

    def check() -> None:
        _check_room(folder.space.lack(allocated(source), file=part))

    with folder.space.writing(part, allocated(source)):
        copying = asyncio.create_task(asyncio.to_thread(copy_disk, source, part, told_from_thread, stop, check))
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([copying])
            raise
    size = part.stat().st_size
    if size > limit_for(kind, definition.capacity):
        # The source has grown since the copy was ordered. Whether there is room for it now is seen before the next try.
        raise ImportFailed(reasons.CLONE_SOURCE_GREW, f"the copy takes {size} bytes, and the volume has {definition.capacity}")
    return kind


async def _fetch(folder: StorageFolder, part: Path, definition: ImportDefinition, fetch: Fetch) -> tuple[Path, DiskFormat]:
    # Whoever breaks off breaks off all that is under way for it.
    async with contextlib.aclosing(fetch.pieces()) as pieces:
        return await _store(folder, part, definition, fetch, pieces)


async def _store(
    folder: StorageFolder, part: Path, definition: ImportDefinition, fetch: Fetch, pieces: AsyncIterator[bytes]
) -> tuple[Path, DiskFormat]:
    head = b""
    limit = -1
    written = 0
    with part.open("xb", buffering=0) as file, contextlib.ExitStack() as promised:
        os.chmod(part, 0o600)
        async for piece in pieces:
            if len(head) < HEADER:
                head += piece[: HEADER - len(head)]
            if limit < 0 and (len(head) >= HEADER):
                announced = 0 if fetch.packed else fetch.total
                limit = _limit(head, definition.capacity, announced)
                _check_room(folder.space.lack(announced - written, file=part))
                promised.enter_context(folder.space.writing(part, announced))
            written += len(piece)
            if 0 <= limit < written:
                raise _too_large(definition.capacity)
            # What is packed, or of no known length, shows only now how large it is.
            _check_room(folder.space.lack(len(piece), file=part))
            await asyncio.to_thread(_write, file, piece)
    kind = format_of(head)
    if written > limit_for(kind, definition.capacity):
        raise _too_large(definition.capacity)
    if kind == "raw":
        return part, kind
    size = await asyncio.to_thread(check_qcow2, part, definition.capacity)
    raw = part.with_name(f"raw-{part.name}")
    if not await to_raw(part, raw, size, lambda: _check_room(folder.space.lack(file=raw))):
        return part, kind
    part.unlink()
    return raw, "raw"


def _write(file: RawIOBase, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _check_room(lack: str) -> None:
    if lack:
        raise ImportFailed(reasons.INSUFFICIENT_STORAGE, lack)


def _limit(head: bytes, capacity: int, announced: int) -> int:
    """Judged by the first bytes: a large download that cannot be used need not be waited for."""
    limit = limit_for(format_of(head), capacity)
    if announced > limit:
        raise _too_large(capacity)
    return limit


def _too_large(capacity: int) -> ImportFailed:
    return ImportFailed(reasons.VOLUME_TOO_SMALL, f"the image is larger than the volume, which has {capacity} bytes")
