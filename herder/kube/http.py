"""The transport over HTTP: to a unix socket or, over TLS, to a host."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from herder.kube.errors import Unreachable, error_from
from herder.kube.transport import Call, Reply

CONNECT_PATIENCE = 10.0
# A whole list may be one answer, and aiohttp reads no line longer than its buffer lets it.
READ_BUFFER = 1 << 20
Authorization = Callable[[], Awaitable[str]]


class HttpTransport:
    def __init__(
        self, session: aiohttp.ClientSession, authorization: Authorization | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """`authorization` is asked before each request: tokens are renewed while we run."""
        self._session = session
        self._authorization = authorization
        self._tls = tls

    @classmethod
    def over_socket(cls, socket: Path, agent: str) -> HttpTransport:
        return cls(_session("http://herder", aiohttp.UnixConnector(str(socket), limit=0), agent))

    @classmethod
    def over_tls(
        cls, server: str, agent: str, tls: ssl.SSLContext | None, authorization: Authorization | None = None
    ) -> HttpTransport:
        return cls(_session(server, aiohttp.TCPConnector(limit=0), agent), authorization, tls)

    async def send(self, call: Call) -> Reply:
        try:
            async with self._request(call, await self._headers(call)) as response:
                body = await response.read()
                return Reply(response.status, body, tuple(response.headers.getall("Warning", ())))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(call, error) from error

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        try:
            response = await self._request(call, await self._headers(call))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(call, error) from error
        try:
            if response.status >= 400:
                raise error_from(response.status, await response.read())
            yield _pieces(call, response)
        finally:
            response.close()

    async def close(self) -> None:
        await self._session.close()

    async def _headers(self, call: Call) -> dict[str, str]:
        headers = {"Accept": call.accept}
        if call.body:
            headers["Content-Type"] = call.content_type
        if self._authorization is not None:
            headers["Authorization"] = await self._authorization()
        return headers

    def _request(self, call: Call, headers: dict[str, str]):
        patience = aiohttp.ClientTimeout(total=call.patience, sock_connect=CONNECT_PATIENCE)
        return self._session.request(
            call.method,
            call.path,
            params=call.query or None,
            data=call.body or None,
            headers=headers,
            timeout=patience,
            ssl=self._tls if self._tls is not None else True,
            allow_redirects=False,
        )


def _session(server: str, connector: aiohttp.BaseConnector, agent: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        server, connector=connector, headers={"User-Agent": f"{agent}/1"}, read_bufsize=READ_BUFFER, auto_decompress=True
    )


async def _pieces(call: Call, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable(call, error) from error


def _unreachable(call: Call, error: BaseException) -> Unreachable:
    return Unreachable(f"{call.method} {call.path}: no whole answer from the API server: {str(error) or type(error).__name__}")
