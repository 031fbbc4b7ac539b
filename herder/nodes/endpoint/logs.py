"""The log of a pod's work, cut to what was asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from herder.nodes.endpoint.options import LogOptions

# A guest that never ends its line must not fill our memory.
LONGEST_LINE = 64 * 1024
# `open_log(follow)`: all that was written, from the beginning.
OpenLog = Callable[[bool], Awaitable[AsyncIterator[bytes]]]


async def read_log(open_log: OpenLog, options: LogOptions) -> AsyncIterator[bytes]:
    """Ends with the log; one that is followed ends with its guest."""
    left = options.limit_bytes
    async for piece in _lines(open_log, options):
        yield piece if left is None else piece[:left]
        if left is not None:
            left -= len(piece)
            if left <= 0:
                return


async def _lines(open_log: OpenLog, options: LogOptions) -> AsyncIterator[bytes]:
    if options.tail_lines is None:
        async for piece in await open_log(options.follow):
            yield piece
        return
    known = 0
    last = _Tail(options.tail_lines)
    async for piece in await open_log(False):
        known += len(piece)
        last.add(piece)
    yield last.text()
    if options.follow:
        async for piece in _after(await open_log(True), known):
            yield piece


async def _after(pieces: AsyncIterator[bytes], known: int) -> AsyncIterator[bytes]:
    """Without so many bytes of the beginning."""
    async for piece in pieces:
        if known < len(piece):
            yield piece[known:]
        known = max(0, known - len(piece))


class _Tail:
    """The last lines of what is added; the last one may be without its end."""

    def __init__(self, count: int) -> None:
        self._lines: deque[bytes] = deque(maxlen=count)
        self._rest = b""
        self._wanted = count

    def add(self, piece: bytes) -> None:
        *whole, rest = (self._rest + piece).split(b"\n")
        self._lines.extend(line + b"\n" for line in whole)
        self._rest = rest[-LONGEST_LINE:]

    def text(self) -> bytes:
        lines = [*self._lines, self._rest] if self._rest else list(self._lines)
        return b"".join(lines[-self._wanted :]) if self._wanted else b""
