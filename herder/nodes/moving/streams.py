"""Requests and answers over a stream: four bytes that say how long, and then JSON. Whatever else comes ends the connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from herder.kit.tasks import watched
from herder.nodes.moving.link import Answering, Unreachable
from herder.nodes.moving.messages import LONGEST, Answer, Request, decode_answer, decode_request, encode

log = structlog.get_logger()
# For one whole message to come, once it has begun.
PATIENCE = 10.0
# A connection that nobody uses is given up; the side that asks does so first, so that it never speaks into a dead one.
IDLE = 60.0
FRESH = 30.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]


class Garbled(Exception):
    """What came is no message of ours."""


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """Raises `Garbled`, and IncompleteReadError at the end."""
    size = int.from_bytes(await reader.readexactly(4))
    if size > LONGEST:
        raise Garbled(f"a message of {size} bytes; none of ours has more than {LONGEST}")
    async with asyncio.timeout(PATIENCE):
        return await reader.readexactly(size)


async def write_message(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(len(data).to_bytes(4) + data)
    async with asyncio.timeout(PATIENCE):
        await writer.drain()


async def serve(streams: Streams, answering: Answering, node: str | None) -> None:
    """Until the other side leaves, falls silent or says what we do not understand."""
    reader, writer = streams
    try:
        while True:
            async with asyncio.timeout(IDLE):
                data = await read_message(reader)
            await write_message(writer, encode(await answering(_request(data), node)))
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, ssl.SSLError):
        pass
    except Garbled as problem:
        log.warning("somebody who is no agent was sent away", peer=node, problem=str(problem))
    finally:
        writer.close()


def _request(data: bytes) -> Request:
    try:
        return decode_request(data)
    except msgspec.MsgspecError as error:
        raise Garbled(str(error)) from None


class Caller:
    """The connections of one agent to others: one for each address, kept for the next request."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Streams, float]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        # How many requests are under way, or wait for others.
        self._asking: Counter[str] = Counter()

    async def ask(self, address: str, dial: Dial, request: Request) -> Answer:
        """Raises `Unreachable`."""
        self._tidy()
        self._asking[address] += 1
        try:
            return await self._ask(address, dial, request)
        finally:
            self._asking[address] -= 1

    async def _ask(self, address: str, dial: Dial, request: Request) -> Answer:
        async with self._locks.setdefault(address, asyncio.Lock()):
            try:
                reader, writer = await self._streams(address, dial)
                await write_message(writer, encode(request))
                async with asyncio.timeout(PATIENCE):
                    answer = decode_answer(await read_message(reader))
            except (OSError, EOFError, TimeoutError, ssl.SSLError, Garbled, msgspec.MsgspecError) as error:
                self._drop(address)
                raise Unreachable(str(error) or type(error).__name__) from None
            except BaseException:
                # An answer that comes when nobody waits for it would be taken for that to the next request.
                self._drop(address)
                raise
            self._open[address] = ((reader, writer), _now())
            return answer

    async def _streams(self, address: str, dial: Dial) -> Streams:
        streams, used = self._open.get(address, (None, 0.0))
        if streams is not None and _now() - used < FRESH and not streams[0].at_eof():
            return streams
        self._drop(address)
        async with asyncio.timeout(PATIENCE):
            streams = await dial()
        self._open[address] = (streams, _now())
        return streams

    def _tidy(self) -> None:
        """What is too old to be used again is closed: nodes come and go for ever under new addresses."""
        for address in [one for one in self._locks if not self._asking[one]]:
            _, used = self._open.get(address, (None, -FRESH))
            if _now() - used >= FRESH:
                self._drop(address)
                del self._locks[address], self._asking[address]

    def _drop(self, address: str) -> None:
        if (known := self._open.pop(address, None)) is not None:
            known[0][1].close()

    def close(self) -> None:
        for address in tuple(self._open):
            self._drop(address)


class Server:
    """Those that are connected to us."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def began(self, server: asyncio.Server) -> None:
        self._server = server

    def take(self, streams: Streams, answering: Answering, node: str | None) -> asyncio.Task[None]:
        return watched(serve(streams, answering, node), "a talk with another agent", kept_in=self._tasks, node=node)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)


def _now() -> float:
    return asyncio.get_running_loop().time()
