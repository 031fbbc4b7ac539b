"""Unpacks gzip and xz on the way. What it is shows in its first bytes; names and headers are often wrong.

It is not unpacked here, but by a child (unpack.py) that is as unprivileged and confined as `qemu-img`: what anybody may have sent
is read by nobody who could do harm with it, and it keeps no agent from its other work.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import msgspec

from herder.api import reasons
from herder.nodes.imports.converting import ENVIRONMENT, death, settings_for
from herder.nodes.imports.failure import ImportFailed

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
PROGRAM = str(Path(__file__).with_name("unpack.py"))
# With Python itself, and what xz may have of it.
MEMORY = 768 * 1024 * 1024
# Of processor time: how much it may become is bounded by the volume, and how fast it comes by the network.
CPU_SECONDS = 24 * 3600
# For one answer, of a megabyte at most.
PATIENCE = 60.0
Kind = Literal["gzip", "xz"]


class Unpacker:
    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._child: asyncio.subprocess.Process | None = None
        self._done = False

    @property
    def packed(self) -> bool:
        return self._child is not None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    async def feed(self, piece: bytes) -> AsyncIterator[bytes]:
        if self._head is not None:
            self._head += piece
            if len(self._head) < len(XZ):
                return
            piece, self._head = self._head, None
            if (kind := _recognised(piece)) is not None:
                self._child = await _start(kind)
        if self._child is None:
            yield piece
        elif not self._done:
            async for unpacked in self._unpacked(self._child, piece):
                yield unpacked

    def end(self) -> bytes:
        if self.packed and not self._done:
            raise _failed("the source is packed, and its end is missing")
        rest, self._head = self._head or b"", None
        return rest

    async def aclose(self) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                self._child.kill()
            await self._child.wait()

    async def _unpacked(self, child: asyncio.subprocess.Process, piece: bytes) -> AsyncIterator[bytes]:
        assert child.stdin is not None and child.stdout is not None, "they were asked for"
        try:
            child.stdin.write(len(piece).to_bytes(4) + piece)
            while True:
                async with asyncio.timeout(PATIENCE):
                    await child.stdin.drain()
                    head = await child.stdout.readexactly(5)
                    data = await child.stdout.readexactly(int.from_bytes(head[1:]))
                if head[:1] != b"d":
                    break
                yield data
        except TimeoutError:
            raise _failed(f"the source looks packed, and nothing came of it for {PATIENCE:.0f} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            how = death(await child.wait())
            raise _failed(f"the source looks packed, and cannot be unpacked: {how}") from None
        if head[:1] == b"x":
            raise _failed(f"the source looks packed, and cannot be unpacked: {data.decode(errors='replace')}")
        self._done = head[:1] == b"e"


def _recognised(head: bytes) -> Kind | None:
    if head.startswith(GZIP):
        return "gzip"
    return "xz" if head.startswith(XZ) else None


async def _start(kind: Kind) -> asyncio.subprocess.Process:
    settings = settings_for(memory=MEMORY, cpu_seconds=CPU_SECONDS, file_size=0, open_files=8)
    about = msgspec.json.encode({"settings": settings, "kind": kind}).decode()
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", PROGRAM, about),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env=ENVIRONMENT,
        start_new_session=True,
    )


def _failed(why: str) -> ImportFailed:
    return ImportFailed(reasons.NOT_A_DISK_IMAGE, why)
