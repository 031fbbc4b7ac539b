"""What is left of the file system that volumes share with the store: measured, and promised to those who write at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import structlog

from herder.rules.disk_space import Reserve, Space, is_short, lacking, never_fits, shown, under_pressure

log = structlog.get_logger()
# Seconds between two looks; and where little is left.
LOOK_EVERY, LOOK_CLOSELY_EVERY = 5.0, 0.25
# Told that so little is left, or that there is room again.
Told = Callable[[bool, bool], Awaitable[None]]


def measured(folder: Path) -> Space:
    """What somebody who is not root can have: guests are not."""
    found = os.statvfs(folder)
    return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


class DiskSpace:
    def __init__(self, folder: Path, reserve: Reserve | None = None, measure: Callable[[Path], Space] = measured) -> None:
        self._folder = folder
        self._reserve = reserve or Reserve()
        self._measure = measure
        # What is being written: the file, and how large it may become.
        self._writing: dict[Path, int] = {}
        self._changed: list[Callable[[], None]] = []
        self.pressure = False

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Called when there is pressure, and when there is none any more."""
        self._changed.append(changed)

    def lack(self, more: int = 0, *, file: Path | None = None) -> str:
        """Why so many bytes more cannot be had, or cannot be written to this file; empty where they can."""
        promised = sum(_left(path, size) for path, size in tuple(self._writing.items()) if path != file)
        return lacking(self._space(), self._reserve, more, promised)

    def never_fits(self, size: int) -> str:
        return never_fits(self._space(), self._reserve, size)

    @contextlib.contextmanager
    def writing(self, file: Path, size: int) -> Generator[None]:
        """So much is kept from others for as long as this is written."""
        self._writing[file] = size
        try:
            yield
        finally:
            self._writing.pop(file, None)

    def _space(self) -> Space:
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return self._measure(folder)

    async def watch(self, told: Told) -> None:
        """For as long as it is let."""
        while True:
            pause = await self.look(told)
            await asyncio.sleep(pause)

    async def look(self, told: Told) -> float:
        """Once; how long until the next time. The closer its end, the more often: a disk is filled in seconds."""
        space = await asyncio.to_thread(self._space)
        before, self.pressure = self.pressure, under_pressure(space, self._reserve, self.pressure)
        if before != self.pressure:
            left = {"left": shown(space.free), "of": shown(space.total), "kept": shown(self._reserve.of(space.total))}
            log.warning("the storage is almost full" if self.pressure else "the storage has room again", **left)
            for changed in self._changed:
                changed()
        await told(is_short(space, self._reserve), not self.pressure)
        return LOOK_CLOSELY_EVERY if space.free < 2 * self._reserve.of(space.total) else LOOK_EVERY


def allocated(path: Path) -> int:
    """What a file takes of the disk; nothing where it is not there."""
    try:
        return os.stat(path, follow_symlinks=False).st_blocks * 512
    except OSError:
        return 0


def _left(path: Path, size: int) -> int:
    return max(0, size - allocated(path))
