"""Tells when a file has grown, by the kernel's word (inotify): Python has no module for it."""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_MODIFIED, _CLOSED = 0x2, 0x8


class Growth:
    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._grown = asyncio.Event()
        self._descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0 or _LIBC.inotify_add_watch(self._descriptor, os.fsencode(path), _MODIFIED | _CLOSED) < 0:
            raise OSError(ctypes.get_errno(), f"{path.name} cannot be watched")
        self._loop.add_reader(self._descriptor, self._readable)

    def _readable(self) -> None:
        os.read(self._descriptor, 1 << 16)
        self._grown.set()

    async def wait(self) -> None:
        await self._grown.wait()
        self._grown.clear()

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
