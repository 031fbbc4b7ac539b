"""A transport that does to a cache what networks and servers do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager

from herder.kube.errors import Invalid, KubeError, Unreachable
from herder.kube.transport import Call, Reply, Transport


class Faults:
    """All is well until it is told otherwise."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.calls: list[Call] = []
        self._cut = asyncio.Event()
        # How many of the next calls nobody answers.
        self.refuse = 0
        # What the next streams are answered with.
        self.answers: list[KubeError] = []
        # Every piece comes this often.
        self.times = 1
        # Streams open and then say nothing.
        self.silent = False
        # So many of the next streams open, say nothing, and end when their time is over.
        self.wordless = 0
        # The server does not know lists as the beginning of a watch.
        self.pages_only = False
        # An old list, for the next ones who ask for a list.
        self.stale: list[bytes] = []
        # Every piece is cut into pieces of so many bytes.
        self.piece = 0
        # Streams break off in the middle of a line, after so many bytes; -1 for never.
        self.bytes_left = -1
        # Happens before each call that is no stream.
        self.before: Callable[[Call], Awaitable[None]] | None = None

    @property
    def streams(self) -> list[Call]:
        return [call for call in self.calls if "watch" in call.query]

    def drop(self) -> None:
        """All connections are gone, now."""
        self._cut.set()
        self._cut = asyncio.Event()

    async def send(self, call: Call) -> Reply:
        self._begin(call)
        if self.before is not None:
            await self.before(call)
        return await self._inner.send(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        self._begin(call)
        if self.answers:
            raise self.answers.pop(0)
        initial = "sendInitialEvents" in call.query
        if self.pages_only and initial:
            raise Invalid(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
        if self.silent:
            yield _nothing(self._cut)
        elif self.wordless:
            self.wordless -= 1
            yield _nothing(self._cut, float(call.query["timeoutSeconds"]))
        elif self.stale and initial:
            yield _again([self.stale.pop(0)])
        else:
            async with self._inner.stream(call) as pieces, aclosing(self._pieces(pieces)) as broken:
                yield broken

    async def close(self) -> None:
        await self._inner.close()

    def _begin(self, call: Call) -> None:
        self.calls.append(call)
        if self.refuse:
            self.refuse -= 1
            raise Unreachable("nobody answers, as the test wants it")

    async def _pieces(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        async with aclosing(_until(self._cut, pieces)) as connected:
            async for piece in connected:
                for broken in self._broken(piece):
                    yield broken

    def _broken(self, piece: bytes) -> Iterator[bytes]:
        for part in _split(piece, self.piece) if self.piece else [piece] * self.times:
            if self.bytes_left >= 0:
                part, self.bytes_left = part[: self.bytes_left], self.bytes_left - len(part)
                yield part
                if self.bytes_left < 0:
                    raise Unreachable("the connection broke off, as the test wants it")
            else:
                yield part


async def _until(cut: asyncio.Event, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Ends with an error as soon as the connection is cut."""
    ends = asyncio.ensure_future(cut.wait())
    try:
        while True:
            comes = asyncio.ensure_future(anext(pieces, None))
            try:
                await asyncio.wait((ends, comes), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not comes.done():
                    comes.cancel()
                    await asyncio.wait((comes,))
            if ends.done():
                raise Unreachable("the connection broke off, as the test wants it")
            piece = comes.result()
            if piece is None:
                return
            yield piece
    finally:
        ends.cancel()


def _split(piece: bytes, size: int) -> list[bytes]:
    return [piece[start : start + size] for start in range(0, len(piece), size)]


async def _nothing(cut: asyncio.Event, seconds: float | None = None) -> AsyncIterator[bytes]:
    try:
        await asyncio.wait_for(cut.wait(), seconds)
    except TimeoutError:
        return
    raise Unreachable("the connection broke off, as the test wants it")
    yield b""


async def _again(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
