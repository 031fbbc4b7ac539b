"""The transport over HTTP to a host, over TLS where it is asked for.

There is no rate limit of our own: API servers share themselves out fairly (API Priority and Fairness), and say with 429 and
Retry-After when it is too much. A read that is told so is asked again here; a write goes back to its caller, whose queue waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from herder.kube.credentials import Credentials, Shown
from herder.kube.errors import ApiStatusError, Unreachable, error_from
from herder.kube.pacing import SMALL, Pace
from herder.kube.transport import Call, Reply
from herder.net.redirects import Redirected, never_followed

CONNECT_PATIENCE = 10.0
# A whole list may be one answer, and aiohttp reads no line longer than its buffer lets it.
READ_BUFFER = 1 << 20
# As often as client-go asks again, and no longer than a person would wait.
REPEATS = 10
LONGEST_WAIT = 30.0
# A watch has no end: what notices a server that went away without a word is the kernel, after a minute.
KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3), (socket.TCP_USER_TIMEOUT, 60_000))
# For connections without an end on which nobody may say anything for hours.
HEARTBEAT = 30.0
FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
Headers = CIMultiDict[str]


class HttpTransport:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: str,
        credentials: Credentials,
        *,
        server_name: str = "",
        proxy: str = "",
    ) -> None:
        """`server_name` is what its certificate is checked against, where that is not its host."""
        self._session = session
        self._server = server.rstrip("/")
        self._credentials = credentials
        self._server_name = server_name or None
        self._proxy = proxy or None

    @classmethod
    def over_tcp(
        cls,
        server: str,
        agent: str,
        credentials: Credentials,
        *,
        headers: Mapping[str, str] | None = None,
        server_name: str = "",
        proxy: str = "",
    ) -> HttpTransport:
        """`headers` go with every request."""
        connector = aiohttp.TCPConnector(limit=0, socket_factory=lively_socket)
        return cls(_session(connector, agent, headers), server, credentials, server_name=server_name, proxy=proxy)

    async def send(self, call: Call) -> Reply:
        waited = 0.0
        for _ in range(REPEATS):
            reply, pause = await self._send_known(call)
            if pause is None or call.method != "GET" or waited + pause > LONGEST_WAIT:
                return reply
            await asyncio.sleep(pause)
            waited += pause
        return (await self._send_known(call))[0]

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        response = await self._open(call)
        try:
            if response.status >= 400:
                raise error_from(response.status, await _body(call, response))
            yield _pieces(call, response)
        finally:
            response.close()

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Sequence[tuple[str, str]], protocol: str
    ) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
        """A connection both ways, as who we are to every request. Entering it raises the ApiStatusError of a refusal."""
        shown = await self._credentials.show()
        async with self._for_sockets() as session:
            try:
                socket = await session.ws_connect(
                    URL(self._server + path, encoded=True).with_query(query),
                    protocols=(protocol,),
                    headers={"Authorization": shown.authorization} if shown.authorization else None,
                    ssl=shown.tls if shown.tls is not None else True,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    heartbeat=HEARTBEAT,
                )
            except aiohttp.WSServerHandshakeError as error:
                raise await self._why_no_socket(path, error.status) from None
            except FAILURES as error:
                raise unreachable(Call("GET", path), error) from error
            try:
                yield socket
            finally:
                await socket.close()

    def _for_sockets(self) -> aiohttp.ClientSession:
        """The same connections, and never elsewhere: that costs every request a little, so only these are asked for it."""
        return aiohttp.ClientSession(
            connector=self._session.connector,
            connector_owner=False,
            headers=self._session.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            trace_configs=[never_followed()],
        )

    async def close(self) -> None:
        await self._session.close()

    async def _why_no_socket(self, path: str, status: int) -> ApiStatusError:
        """The library keeps only the number of a refusal. Asked for plainly, the server says the same in a sentence."""
        reply = await self.send(Call("GET", path))
        return error_from(status, reply.body if reply.status == status else b"")

    async def _send_known(self, call: Call) -> tuple[Reply, float | None]:
        """The answer, and how long the server asks us to wait before we ask again."""
        response = await self._open(call)
        async with response:
            body = await _body(call, response)
            warnings = tuple(response.headers.getall("Warning", ()))
            return Reply(response.status, body, warnings), _pause(response)

    async def _open(self, call: Call) -> aiohttp.ClientResponse:
        """A server that does not know us is asked once more, if there is something new to show."""
        shown = await self._credentials.show()
        response = await self._request(call, shown)
        if response.status != 401 or not await self._credentials.refused(shown):
            return response
        response.release()
        return await self._request(call, await self._credentials.show())

    async def _request(self, call: Call, shown: Shown) -> aiohttp.ClientResponse:
        query = f"?{urlencode(call.query)}" if call.query else ""
        try:
            response = await self._session.request(
                call.method,
                URL(f"{self._server}{call.path}{query}", encoded=True),
                data=aiohttp.BytesPayload(call.body) if call.body else None,
                headers=_headers(call, shown),
                timeout=_patience(call.patience),
                ssl=shown.tls if shown.tls is not None else True,
                server_hostname=self._server_name,
                proxy=self._proxy,
                allow_redirects=False,
            )
            if 300 <= response.status < 400:
                # Whoever is elsewhere is not the one that we were told to trust.
                response.close()
                raise Redirected(response.status)
            return response
        except FAILURES as error:
            raise unreachable(call, error) from error


def session_over_socket(socket: Path, agent: str) -> aiohttp.ClientSession:
    return _session(aiohttp.UnixConnector(str(socket), limit=0), agent)


@lru_cache
def _patience(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_PATIENCE)


def _headers(call: Call, shown: Shown) -> dict[str, str]:
    headers = {"Accept": call.accept}
    if call.body:
        headers["Content-Type"] = call.content_type
    if shown.authorization:
        headers["Authorization"] = shown.authorization
    return headers


def _session(connector: aiohttp.BaseConnector, agent: str, headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    named = Headers({"User-Agent": f"{agent}/1"})
    named.extend(headers or {})
    return aiohttp.ClientSession(
        connector=connector,
        headers=named,
        # No API server sets any, and to look for them takes a tenth of a request's time.
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        auto_decompress=True,
    )


def lively_socket(address: Any) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _pause(response: aiohttp.ClientResponse) -> float | None:
    """Only of an answer that says that nothing was done: too many requests, or a server that is not ready."""
    asked = response.headers.get("Retry-After", "")
    if (response.status == 429 or response.status >= 500) and asked.isascii() and asked.isdigit():
        return float(asked)
    return None


async def _body(call: Call, response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except FAILURES as error:
        raise unreachable(call, error) from error


async def _pieces(call: Call, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    pace, now = Pace(), asyncio.get_running_loop().time
    try:
        async for piece in response.content.iter_any():
            yield piece
            if pause := pace.pause(now(), len(piece)):
                await _leave_alone(response, pause)
                pace.over(now())
    except FAILURES as error:
        raise unreachable(call, error) from error


async def _leave_alone(response: aiohttp.ClientResponse, pause: float) -> None:
    transport = response.connection.transport if response.connection is not None else None
    if transport is None:
        return  # all of it is here already
    transport.pause_reading()
    _wake_for(transport, SMALL)
    try:
        await asyncio.sleep(pause)
    finally:
        _wake_for(transport, 1)
        transport.resume_reading()


def _wake_for(transport: asyncio.Transport, size: int) -> None:
    """Under TLS a pause only keeps what came from us, and the loop wakes up for it all the same. The kernel need not wake it up
    for less than a size; unix sockets, which have no TLS, do not know that."""
    if transport.get_extra_info("ssl_object") is not None:
        with contextlib.suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


def unreachable(call: Call, error: BaseException) -> Unreachable:
    return Unreachable(f"{call.method} {call.path}: no whole answer from the API server: {str(error) or type(error).__name__}")
