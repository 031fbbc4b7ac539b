"""A wire between a client and an engine that a test can cut, and that can be asked for as an HTTP proxy."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    def __init__(self, server: str) -> None:
        split = urlsplit(server)
        self._target = (split.hostname or "", split.port or 443)
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server | None = None
        self.port = 0
        self.asked: list[str] = []

    async def open(self) -> None:
        """At the same port each time."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Nobody comes in, and all who were in are thrown out."""
        if self._listening is not None:
            self._listening.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            if first == b"C":  # CONNECT: TLS never begins so
                first = await self._agree(reader, writer)
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._writers |= {writer, far_writer}
            far_writer.write(first)
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async def _agree(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        request = await reader.readuntil(b"\r\n\r\n")
        self.asked.append("C" + request.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        return b""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def wire_to(server: str) -> AsyncGenerator[Wire]:
    wire = Wire(server)
    await wire.open()
    try:
        yield wire
    finally:
        wire.cut()
