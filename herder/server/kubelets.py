"""The way from the engine to its nodes: HTTPS, with a certificate that tells a node that it is the API server who asks."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from herder.server import status

CONNECT_PATIENCE = 10.0
HEARTBEAT = 30.0
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname")
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
_REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound"}
Document = dict[str, Any]
T = TypeVar("T")


class Place(msgspec.Struct, frozen=True):
    """Where a node answers."""

    node: str
    host: str
    port: int

    def url(self, path: str, query: Mapping[str, str]) -> URL:
        return URL.build(scheme="https", host=self.host, port=self.port, path=path, query=query)


def place_of(node: Document) -> Place:
    name = node["metadata"]["name"]
    known: Document = node.get("status", {})
    port = known.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    addresses = {one["type"]: one["address"] for one in known.get("addresses", ())}
    host = next((addresses[kind] for kind in ADDRESS_TYPES if kind in addresses), "")
    if not port or not host:
        raise status.ApiError(503, "ServiceUnavailable", f"node {name} does not say where logs and consoles can be asked for")
    return Place(name, host, port)


def client_tls(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(certificate, key)
    return context


class Kubelets:
    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def get(self, place: Place, path: str, query: Mapping[str, str]) -> aiohttp.ClientResponse:
        """An answer that has begun; the caller closes it. What the node refuses is raised in its own words."""
        session, url = self._opened(), place.url(path, query)
        try:
            response = await _known_by_either(place, lambda name: session.get(url, server_hostname=name))
            if response.status < 400:
                return response
            said = (await response.text())[:1000].strip()
            response.release()
        except _FAILURES as error:
            raise _no_answer(place, error) from None
        raise status.ApiError(response.status, _REASONS.get(response.status, "InternalError"), said)

    async def connect(self, place: Place, path: str, query: Mapping[str, str], protocol: str) -> aiohttp.ClientWebSocketResponse:
        session, url = self._opened(), place.url(path, query)
        try:
            return await _known_by_either(
                place, lambda name: session.ws_connect(url, protocols=(protocol,), heartbeat=HEARTBEAT, server_hostname=name)
            )
        except aiohttp.WSServerHandshakeError as error:
            sentence = f"node {place.node} refused the console with {error.status}"
            raise status.ApiError(error.status, _REASONS.get(error.status, "InternalError"), sentence) from None
        except _FAILURES as error:
            raise _no_answer(place, error) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_PATIENCE)
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._tls, limit=0), timeout=timeout)
        return self._session


async def _known_by_either(place: Place, ask: Callable[[str | None], Awaitable[T]]) -> T:
    """By its address, as those that we started; else by its name, as those that joined us. Either is signed by our authority."""
    try:
        return await ask(None)
    except aiohttp.ClientConnectorCertificateError:
        return await ask(place.node)


def _no_answer(place: Place, error: BaseException) -> status.ApiError:
    why = str(error) or type(error).__name__
    return status.ApiError(500, "InternalError", f"node {place.node} does not answer at {place.host}:{place.port}: {why}")
