"""The way from the engine to its nodes: HTTPS, with a certificate that tells a node that it is the API server who asks.

A node is less trusted than we are: it is asked where it says that it is, but must be who it is (node_identity.py); it cannot
send us elsewhere, and no proxy is in between; what it says is bounded, and so is how long it may take to begin.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from herder.net.redirects import Redirected, never_followed
from herder.server import status
from herder.server.fairness import NodeWaits, Wait
from herder.server.node_identity import AGENTS
from herder.server.request import User

HEARTBEAT = 30.0
# In seconds, for a connection to our own agents that nothing is asked on. They wait longer for the next question.
KEPT = 40.0
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname")
# Of what a node says in its own words, the rest is not even read.
LONGEST_REFUSAL = 1000
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
# What of a node's refusals is about the request; whatever else it answers is about the node.
_REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 429: "TooManyRequests", 503: "ServiceUnavailable"}
Document = dict[str, Any]
Query = Mapping[str, str | Sequence[str]]
T = TypeVar("T")


class NodePatience(msgspec.Struct, frozen=True):
    """In seconds."""

    # To connect, and for the handshake.
    connect: float = 10.0
    # From sending the request to the head of the answer. What comes after it may take its time where it is followed.
    head: float = 15.0
    # For the next piece of an answer that has an end.
    piece: float = 30.0


class Place(msgspec.Struct, frozen=True):
    """Where a node answers."""

    node: str
    host: str
    port: int
    # Whether nobody but the agents of `herder up` may answer, who are many nodes: one connection is then good for all of them.
    agents: bool = False

    @property
    def answerer(self) -> str:
        """Who the other side of a connection has to be (node_identity.py)."""
        return AGENTS if self.agents else self.node

    def url(self, path: str, query: Query) -> URL:
        try:
            return URL.build(scheme="https", host=self.host, port=self.port, path=path, query=query)
        except ValueError as error:
            raise _no_answer(self, error) from None


class SomebodyElse(status.ApiError):
    """Who answers there is not who should."""


def place_of(node: Document) -> Place:
    name = node["metadata"]["name"]
    known: Document = node.get("status", {})
    port = known.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    addresses = {one["type"]: one["address"] for one in known.get("addresses", ())}
    host = next((addresses[kind] for kind in ADDRESS_TYPES if kind in addresses), "")
    if not port or not host:
        raise status.ApiError(503, "ServiceUnavailable", f"node {name} does not say where logs and consoles can be asked for")
    return Place(name, host, port)


class NodeAnswer:
    """An answer that has begun. Whoever asked closes it."""

    def __init__(self, response: aiohttp.ClientResponse, wait: Wait, piece: float | None) -> None:
        self._response = response
        self._wait = wait
        self._piece = piece

    async def pieces(self) -> AsyncIterator[bytes]:
        """Until the node has said all, or has gone."""
        try:
            while True:
                async with asyncio.timeout(self._piece):
                    piece = await self._response.content.readany()
                if not piece:
                    return
                yield piece
        except _FAILURES:
            return

    def close(self) -> None:
        self._response.close()
        self._wait.end()


class NodeConsole:
    """A WebSocket to a node. Whoever asked closes it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, wait: Wait) -> None:
        self.socket = socket
        self._wait = wait

    async def close(self) -> None:
        try:
            await self.socket.close()
        finally:
            self._wait.end()


class Kubelets:
    def __init__(self, tls: ssl.SSLContext, waits: NodeWaits, patience: NodePatience | None = None) -> None:
        self._tls = tls
        self._waits = waits
        self._patience = patience or NodePatience()
        self._session: aiohttp.ClientSession | None = None
        self._to_agents: aiohttp.ClientSession | None = None

    async def get(self, place: Place, path: str, query: Query, user: User, *, endless: bool = False) -> NodeAnswer:
        """What the node refuses is raised in its own words. `endless`: it may be silent for as long as it likes, once it began."""
        url, wait = place.url(path, query), self._waits.enter(place.node, user)
        try:
            session = self._opened_to_agents() if place.agents else self._opened()
            asking = session.get(url, server_hostname=place.answerer, allow_redirects=False)
            response = await self._begun(place, asking)
            if response.status == 200:
                return NodeAnswer(response, wait, None if endless else self._patience.piece)
            raise await self._refusal(place, response)
        except BaseException:
            wait.end()
            raise

    async def connect(self, place: Place, path: str, query: Mapping[str, str], user: User, protocol: str) -> NodeConsole:
        url, wait = place.url(path, query), self._waits.enter(place.node, user)
        try:
            asking = self._opened().ws_connect(url, protocols=(protocol,), heartbeat=HEARTBEAT, server_hostname=place.node)
            return NodeConsole(await self._begun(place, asking), wait)
        except BaseException:
            wait.end()
            raise

    async def close(self) -> None:
        for session in (self._session, self._to_agents):
            if session is not None:
                await session.close()

    async def _begun(self, place: Place, asking: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._patience.connect + self._patience.head):
                return await asking
        except aiohttp.WSServerHandshakeError as error:
            sentence = f"node {place.node} refused the console with {error.status}"
            raise _refused(place, error.status, sentence) from None
        except Redirected as error:
            raise status.ApiError(502, "InternalError", f"node {place.node} gave no answer of its own: {error}") from None
        except aiohttp.ClientConnectorCertificateError as error:
            told = _no_answer(place, error.certificate_error)
            raise SomebodyElse(told.code, told.reason, told.message) from None
        except _FAILURES as error:
            raise _no_answer(place, error) from None

    async def _refusal(self, place: Place, response: aiohttp.ClientResponse) -> status.ApiError:
        """In the node's own words, as far as they go."""
        try:
            async with asyncio.timeout(self._patience.head):
                said = await _first(response.content, LONGEST_REFUSAL)
        except _FAILURES as error:
            return _no_answer(place, error)
        finally:
            response.close()
        return _refused(place, response.status, said.decode(errors="replace").strip())

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Each connection is to one node, for one request: none is ever taken for that to another.
            self._session = self._new_session(aiohttp.TCPConnector(ssl=self._tls, limit=0, force_close=True))
        return self._session

    def _opened_to_agents(self) -> aiohttp.ClientSession:
        """Connections on which nobody else can be: they are kept, since a handshake costs more than most answers."""
        if self._to_agents is None:
            self._to_agents = self._new_session(aiohttp.TCPConnector(ssl=self._tls, limit=0, keepalive_timeout=KEPT))
        return self._to_agents

    def _new_session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._patience.connect),
            trace_configs=[never_followed()],
            # Neither what the environment says of proxies, nor what another node has set, nor what unpacks to more.
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"Accept-Encoding": "identity"},
        )


async def _first(content: aiohttp.StreamReader, size: int) -> bytes:
    said = b""
    while len(said) < size and (piece := await content.read(size - len(said))):
        said += piece
    return said


def _refused(place: Place, code: int, said: str) -> status.ApiError:
    if 300 <= code < 400:
        return status.ApiError(502, "InternalError", f"node {place.node} gave no answer of its own: {Redirected(code)}")
    if code in _REASONS:
        return status.ApiError(code, _REASONS[code], said)
    return status.ApiError(502, "InternalError", f"node {place.node} answered {code}: {said}")


def _no_answer(place: Place, error: BaseException) -> status.ApiError:
    why = (error.args[0] if isinstance(error, ssl.SSLCertVerificationError) and len(error.args) == 1 else str(error)) or (
        "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
    )
    return status.ApiError(500, "InternalError", f"node {place.node} does not answer at {place.host}:{place.port}: {why}")
