"""The way in from outside: HTTP over TLS for people, over a unix socket for our own processes."""

from __future__ import annotations

import asyncio
import hashlib
import math
import socket
import ssl
import time
from asyncio import sslproto
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import structlog
from aiohttp import web
from aiohttp.http import HttpVersion10

from herder.kit import tasks
from herder.net.accepting import Acceptor
from herder.net.bad_requests import server_log
from herder.net.crowd import Limits, limits_of
from herder.net.listener import ArrivalPatience, Listener
from herder.server import status
from herder.server.fairness import share_of
from herder.server.patience import LARGE, Deliveries, Delivery, Patience
from herder.server.quick_writes import Connection, QuickWrites
from herder.server.request import (
    ANONYMOUS,
    AUTHENTICATED,
    BODY_LIMIT,
    ENGINE,
    MASTERS,
    Answer,
    Request,
    Response,
    Stream,
    Upgrade,
    User,
    parse_query,
)
from herder.server.router import Router

log = structlog.get_logger()
STOP_PATIENCE = 2.0
# What a process may have beside all that a file limit allows: each takes memory, too.
MOST_CONNECTIONS = 10_000
OWN_BUG = "the server met a bug of its own; its log says more"
# Each connection has a buffer of its own from the start: with the usual 256 KiB a thousand of them, were they only opened and left,
# would take a quarter of a gigabyte. A record of TLS has 16. There is no public way to say so; a test measures that it still works.
sslproto.SSLProtocol.max_size = 32 * 1024


class HttpServer:
    def __init__(self, router: Router, patience: Patience | None = None, limits: Limits | None = None) -> None:
        """`limits` are for those who come by TLS; our own processes have none."""
        self._router = router
        self._patience = patience or Patience()
        self._limits = limits or limits_of(MOST_CONNECTIONS)
        self._deliveries = Deliveries(self._patience.taking)
        self._watchman: asyncio.Task[None] | None = None
        # By connection: reading a certificate for each request would cost more than many a request.
        self._shown: WeakKeyDictionary[asyncio.Transport, Shown] = WeakKeyDictionary()
        self._doors: dict[str, User] = {}
        self._runner: web.ServerRunner | None = None
        self._listener: Listener | None = None
        self._sockets: list[Acceptor] = []
        self._opening: set[asyncio.Task[object]] = set()
        self._quick = QuickWrites(self._answer_plainly, lambda: self._server(), self._patience.head)
        self._server = web.Server(
            self._handle,
            request_factory=_make_request,
            access_log=None,
            logger=server_log(),
            handler_cancellation=True,
            keepalive_timeout=self._patience.head,
        )

    async def start(
        self,
        listener: socket.socket | None,
        context: ssl.SSLContext | None,
        unix: Path | None,
        doors: Mapping[Path, User] | None = None,
    ) -> None:
        """`doors` are further sockets, each for one user: whoever comes in there is that user, and may do what the user may."""
        self._runner = web.ServerRunner(self._server, shutdown_timeout=STOP_PATIENCE)
        await self._runner.setup()
        self._watchman = tasks.keep_running(self._deliveries.run(), "deliveries")
        if listener is not None:
            first = ArrivalPatience(self._patience.handshake, self._patience.first)
            self._listener = Listener(self._limits, context, first, self._recognise_certificate)
            self._listener.start(listener, self._server)
        for path, user in {**({unix: ENGINE} if unix is not None else {}), **(doors or {})}.items():
            self._doors[str(path)] = user
            path.unlink(missing_ok=True)
            self._sockets.append(self._listen(path, user))
            path.chmod(0o600)

    def _listen(self, path: Path, user: User) -> Acceptor:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        acceptor = Acceptor(listener, lambda connection, _: self._open(connection, user), self._spare)
        acceptor.start()
        return acceptor

    def _open(self, connection: socket.socket, user: User) -> None:
        opening = asyncio.get_running_loop().connect_accepted_socket(lambda: Connection(self._quick, user), connection)
        tasks.watched(opening, "taking a connection of our own", kept_in=self._opening, expected=(OSError,))

    def _spare(self) -> None:
        """Our own processes go before others."""
        if self._listener is not None:
            self._listener.spare()

    async def stop(self) -> None:
        self._router.engine.hub.close()
        for door in self._sockets:
            door.close()
        if self._listener is not None:
            self._listener.close()
        await self._quick.finish(STOP_PATIENCE)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._watchman is not None:
            self._watchman.cancel()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            if self._listener is None:
                return await self._serve(incoming)
            with self._listener.serving(incoming.transport):
                return await self._serve(incoming)
        except ConnectionError:
            # The client has left, at whatever point: nothing is wrong with us, and nobody is there to be told.
            if incoming.transport is not None:
                incoming.transport.abort()
            return web.Response(status=500)

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        answer = await self._answer(incoming)
        if isinstance(answer, Stream):
            with self._deliveries.to(incoming.transport) as delivery:
                return await _stream(incoming, answer, delivery)
        if isinstance(answer, Upgrade):
            return await answer.serve(incoming)
        response = _respond(answer)
        if len(answer.body) > LARGE:
            with self._deliveries.to(incoming.transport) as delivery:
                delivery.begin()
                await response.prepare(incoming)
                await response.write_eof()
        return response

    async def _answer_plainly(self, request: Request) -> Response:
        try:
            return await _whole(await self._router.handle(request))
        except Exception:
            log.exception("request failed", method=request.method, path=request.path)
            return Response(500, status.internal(OWN_BUG).body())

    async def _answer(self, incoming: web.BaseRequest) -> Answer:
        try:
            request = await self._read(incoming)
            return await self._router.handle(request)
        except status.ApiError as error:
            return Response(error.code, error.body(), headers=error.headers)
        except Exception as error:
            if isinstance(error, ConnectionError) and has_left(incoming):
                raise
            log.exception("request failed", method=incoming.method, path=incoming.path)
            return Response(500, status.internal(OWN_BUG).body())

    async def _read(self, incoming: web.BaseRequest) -> Request:
        url = incoming.rel_url
        user = self._identify(incoming)
        self._recognise(incoming.transport, user)
        if incoming.headers.get("Content-Encoding", "identity").lower() != "identity":
            # A few bytes could stand for more than fits into memory.
            raise status.ApiError(415, "UnsupportedMediaType", "compressed bodies are not read; send it as it is")
        try:
            body = await self._body(incoming) if incoming.can_read_body else b""
        except TimeoutError:
            raise status.ApiError(
                504, "Timeout", f"the body of the request was not whole after {self._patience.body:g} s"
            ) from None
        except web.HTTPRequestEntityTooLarge:
            raise status.too_large(BODY_LIMIT) from None
        except web.RequestPayloadError as error:
            raise status.bad_request(f"the body of the request cannot be read: {error}") from None
        return Request(
            method=incoming.method,
            path=url.raw_path,
            query=parse_query(url.raw_query_string),
            headers=incoming.headers,
            body=body,
            user=user,
            internal=self._is_internal(incoming),
        )

    async def _body(self, incoming: web.BaseRequest) -> bytes:
        if incoming.content.is_eof():
            return await incoming.read()
        async with asyncio.timeout(self._patience.body):
            return await incoming.read()

    def _identify(self, incoming: web.BaseRequest) -> User:
        """Who it is: by the certificate of the connection, else by a token."""
        return self._router.engine.access.identify(self._known(incoming), incoming.headers.get("Authorization"))

    def _known(self, incoming: web.BaseRequest) -> User | None:
        transport = incoming.transport
        if transport is None:
            return None
        encrypted = transport.get_extra_info("ssl_object")
        if encrypted is None:
            # Unix sockets are only open to the user we run as. A token that is shown there counts all the same.
            return None if "Authorization" in incoming.headers else self._doors.get(transport.get_extra_info("sockname"))
        shown = self._shown_on(transport, encrypted)
        if shown.until < time.time():
            # Also on a connection that was made while it was good.
            raise status.unauthorized()
        return shown.user

    def _shown_on(self, transport: asyncio.Transport, encrypted: ssl.SSLObject) -> Shown:
        shown = self._shown.get(transport)
        if shown is None:
            shown = self._shown[transport] = shown_by(encrypted)
        return shown

    def _is_internal(self, incoming: web.BaseRequest) -> bool:
        transport = incoming.transport
        if transport is None or "Authorization" in incoming.headers or transport.get_extra_info("ssl_object") is not None:
            return False
        return transport.get_extra_info("sockname") in self._doors

    def _recognise_certificate(self, transport: asyncio.Transport) -> None:
        """As soon as it is shown: then silent strangers are no danger to the connection any more."""
        encrypted = transport.get_extra_info("ssl_object")
        shown = self._shown_on(transport, encrypted) if encrypted is not None else None
        if shown is not None and shown.user is not None and self._listener is not None:
            # Where there is no room, the first request is told so.
            self._listener.recognise(transport, share_of(shown.user), privileged=MASTERS in shown.user.groups)

    def _recognise(self, transport: asyncio.Transport | None, user: User) -> None:
        if self._listener is None or user is ANONYMOUS:
            return
        if problem := self._listener.recognise(transport, share_of(user), privileged=MASTERS in user.groups):
            error = status.too_many_requests(f"{problem}; end some of them, or try again later", 1)
            error.headers["Connection"] = "close"
            raise error


def _make_request(*arguments: Any) -> web.BaseRequest:
    message, payload, protocol, writer, task = arguments
    return web.BaseRequest(message, payload, protocol, writer, task, protocol._loop, client_max_size=BODY_LIMIT + 1)


class Shown(NamedTuple):
    """Who a connection's certificate stands for, and until when."""

    user: User | None
    until: float


def shown_by(encrypted: ssl.SSLObject) -> Shown:
    certificate: Any = encrypted.getpeercert()
    raw = encrypted.getpeercert(binary_form=True)
    if not certificate or not raw:
        return Shown(None, math.inf)
    fingerprint = hashlib.sha256(raw).hexdigest()
    return Shown(user_of(certificate, fingerprint), ssl.cert_time_to_seconds(certificate["notAfter"]))


def user_of(certificate: Any, fingerprint: str) -> User | None:
    """CN is the user, each O a group."""
    name, groups = "", list[str]()
    for ((field, value),) in certificate.get("subject", ()):
        if field == "commonName":
            name = value
        elif field == "organizationName":
            groups.append(value)
    if not name:
        return None
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)}
    return User(name, (*groups, AUTHENTICATED), extra=extra)


def has_left(incoming: web.BaseRequest) -> bool:
    return incoming.transport is None or incoming.transport.is_closing()


async def _whole(answer: Answer) -> Response:
    if isinstance(answer, Response):
        return answer
    if isinstance(answer, Upgrade):
        return Response(400, status.bad_request("this needs a connection that becomes a WebSocket").body())
    try:
        body = b"".join([chunk async for chunk in answer.chunks()])
        return Response(200, body, answer.content_type, answer.headers, answer.warnings)
    finally:
        answer.close()


def _respond(answer: Response) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body)
    _set_headers(response, answer)
    if answer.headers.get("Connection") == "close":
        response.force_close()
    return response


def _set_headers(response: web.StreamResponse, answer: Response | Stream) -> None:
    headers = response.headers
    headers["Content-Type"] = answer.content_type
    headers["Cache-Control"] = "no-cache, private"
    # Else it would say which versions of what it is made of.
    headers["Server"] = "herder"
    headers.update(answer.headers)
    for warning in answer.warnings:
        headers.add("Warning", warning)


async def _stream(incoming: web.BaseRequest, answer: Stream, delivery: Delivery) -> web.StreamResponse:
    response = web.StreamResponse()
    _set_headers(response, answer)
    if incoming.version > HttpVersion10:
        response.enable_chunked_encoding()
    try:
        await response.prepare(incoming)
        async for chunk in answer.chunks():
            if chunk:
                delivery.begin()
                await response.write(chunk)
                delivery.taken()
        await response.write_eof()
    finally:
        answer.close()
    return response


def server_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    # Without a certificate a client is nobody, which is enough for health and version.
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
