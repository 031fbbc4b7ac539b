"""Fetches an image by HTTP: streamed, unpacked on the way, never more than fits, and gone on with where the line was cut."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from herder.api import reasons
from herder.nodes.imports.addresses import Gate
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.unpacking import Unpacker

REDIRECTS = 5
# Without a byte in between.
CUTS = 3
PIECE = 1024 * 1024
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
_MOVED = (301, 302, 303, 307, 308)
Told = Callable[[int, int], None]


class Request(msgspec.Struct, frozen=True):
    url: str
    headers: dict[str, str] = {}
    credentials: tuple[str, str] | None = None
    certificates: str = ""
    checksum: str = ""


class Fetch:
    """One image. Iterating gives what is to be written; afterwards it is known to be whole."""

    def __init__(self, request: Request, allow_local: bool, told: Told) -> None:
        self._request = request
        self._gate = Gate(allow_local)
        self._told = told
        self._received = 0
        self.total = 0
        self._version = ""
        algorithm, _, self._expected = request.checksum.partition(":")
        self._sum = hashlib.new(algorithm) if algorithm else None
        self._unpacker = Unpacker()

    @property
    def packed(self) -> bool:
        return self._unpacker.packed

    async def pieces(self) -> AsyncGenerator[bytes]:
        connector = aiohttp.TCPConnector(ssl=self._trust(), socket_factory=self._gate, force_close=True)
        async with (
            contextlib.aclosing(self._unpacker),
            aiohttp.ClientSession(connector=connector, timeout=TIMEOUT, auto_decompress=False) as session,
        ):
            cuts = 0
            while True:
                before = self._received
                try:
                    async for piece in self._from_here(session):
                        yield piece
                    break
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    cuts = cuts + 1 if self._received == before else 1
                    await self._judge(error, cuts)
        yield self._unpacker.end()
        self._check_sum()

    async def _judge(self, error: Exception, cuts: int) -> None:
        """Returns where it is worth going on."""
        if self._gate.refused:
            why = f"{self._request.url} leads to {self._gate.refused}, an address of the node itself or of its link"
            raise ImportFailed(reasons.SOURCE_FORBIDDEN, f"{why}; its agent allows that only with --allow-local-imports")
        host = urlsplit(self._request.url).netloc.rpartition("@")[2]
        if not self._received:
            raise ImportFailed(reasons.SOURCE_UNREACHABLE, f"{host} cannot be reached: {error or type(error).__name__}") from error
        if not self._version or cuts >= CUTS:
            of = f" of {self.total}" if self.total else ""
            why = f"{host} ended the connection after {self._received}{of} bytes"
            raise ImportFailed(reasons.SOURCE_CUT_SHORT, why) from error
        await asyncio.sleep(cuts)

    async def _from_here(self, session: aiohttp.ClientSession) -> AsyncIterator[bytes]:
        answer = await self._ask(session)
        async with answer:
            self._check(answer)
            async for piece in answer.content.iter_chunked(PIECE):
                self._received += len(piece)
                if self._sum is not None:
                    self._sum.update(piece)
                async for unpacked in self._unpacker.feed(piece):
                    yield unpacked
                self._told(self._received, self.total)
        if self.total and self._received != self.total:
            raise aiohttp.ClientPayloadError(f"{self._received} of {self.total} bytes")

    async def _ask(self, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
        """What we were given to show is shown to nobody but the one that it is for."""
        url = self._request.url
        for _ in range(REDIRECTS + 1):
            same = _origin(url) == _origin(self._request.url)
            headers = {"Accept-Encoding": "identity", **(self._request.headers if same else {})}
            if self._received:
                headers |= {"Range": f"bytes={self._received}-", "If-Range": self._version}
            if same and self._request.credentials:
                headers["Authorization"] = aiohttp.encode_basic_auth(*self._request.credentials)
            answer = await session.get(url, headers=headers, allow_redirects=False)
            # Where a name has several addresses, another one was let through.
            self._gate.refused = ""
            if answer.status not in _MOVED:
                return answer
            answer.close()
            url = urljoin(url, answer.headers.get("Location", ""))
            if urlsplit(url).scheme not in ("http", "https"):
                raise ImportFailed(reasons.SOURCE_FORBIDDEN, f"{self._request.url} leads to {url}, which is neither http nor https")
        raise ImportFailed(reasons.SOURCE_REFUSED, f"{self._request.url} leads on and on, more than {REDIRECTS} times")

    def _check(self, answer: aiohttp.ClientResponse) -> None:
        code, where = answer.status, f"{self._request.url} answered {answer.status} {answer.reason or ''}".rstrip()
        if code in (404, 410):
            raise ImportFailed(reasons.SOURCE_NOT_FOUND, where)
        if code == 429 or code >= 500:
            raise ImportFailed(reasons.SOURCE_UNREACHABLE, where)
        if self._received:
            if code != 206:
                raise ImportFailed(reasons.SOURCE_CUT_SHORT, "the connection was cut, and the server does not go on where it was")
        elif code != 200:
            raise ImportFailed(reasons.SOURCE_REFUSED, where)
        else:
            self.total = answer.content_length or 0
            self._version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""

    def _check_sum(self) -> None:
        if self._sum is not None and self._sum.hexdigest() != self._expected.lower():
            why = f"the content adds up to {self._sum.name}:{self._sum.hexdigest()}, and {self._request.checksum} was expected"
            raise ImportFailed(reasons.CHECKSUM_MISMATCH, why)

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._request.certificates or None)


def _origin(url: str) -> tuple[str, str, int | None]:
    found = urlsplit(url)
    return (found.scheme, found.hostname or "", found.port)
