"""A link between machines: TLS in which both sides show the certificate by which the API server knows their node.

That certificate is one for clients, and no authority of a cluster signs another one for a node that only joined. So the side that
asks looks itself at who answers: a certificate of the cluster's authority, for the very node that it wants to speak with.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from herder.api.world import World
from herder.nodes.moving.link import Answering, Impostor, Unreachable
from herder.nodes.moving.messages import Answer, Request
from herder.nodes.moving.streams import Caller, Server, Streams
from herder.pki import reading

log = structlog.get_logger()
SCHEME = "tls:"
PREFIX = "system:node:"
GROUP = "system:nodes"


class Identity(msgspec.Struct, frozen=True):
    """Files: the node's certificate and key, and the authority of its cluster."""

    certificate: Path
    key: Path
    authority: Path


class TlsLink:
    def __init__(self, host: str, identity: Identity, world: World, port: int = 0) -> None:
        self._host = host
        self._port = port
        self._identity = identity
        self._world = world
        self._caller = Caller()
        self._server = Server()

    @property
    def address(self) -> str:
        return f"{SCHEME}{_bracketed(self._host)}:{self._port}" if self._port else ""

    async def open(self, answering: Answering) -> None:
        async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            node = _node_in(_certificate(writer))
            if not node:
                log.warning("somebody who is no node was sent away", peer=writer.get_extra_info("peername"))
                writer.close()
                return
            self._server.take((reader, writer), answering, node)

        server = await asyncio.start_server(came, self._host, self._port, ssl=self._listening())
        self._server.began(server)
        self._port = server.sockets[0].getsockname()[1]

    async def ask(self, address: str, node: str, request: Request) -> Answer:
        if not address.startswith(SCHEME):
            raise Unreachable(f"this node reaches others over the network, and {address} is no address there")
        host, _, port = address.removeprefix(SCHEME).rpartition(":")

        async def dial() -> Streams:
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=self._calling())
            try:
                self._check(_certificate(writer), node)
            except Impostor:
                writer.close()
                raise
            return reader, writer

        try:
            return await self._caller.ask(address, dial, request)
        except ValueError as error:
            raise Unreachable(f"{address}: {error}") from None

    async def close(self) -> None:
        self._caller.close()
        await self._server.close()

    def _listening(self) -> ssl.SSLContext:
        context = self._shows(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        context.load_verify_locations(self._identity.authority)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _calling(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Looked at by `_check`.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return self._shows(context)

    def _shows(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self._identity.certificate, self._identity.key)
        return context

    def _check(self, certificate: x509.Certificate | None, node: str) -> None:
        """Raises `Impostor`."""
        if certificate is None or _node_in(certificate) != node:
            raise Impostor(f"who answers is not node {node}")
        if not certificate.not_valid_before_utc.timestamp() <= self._world.now() <= certificate.not_valid_after_utc.timestamp():
            raise Impostor(f"the certificate of node {node} is not valid now")
        shown = certificate.public_bytes(Encoding.PEM)
        if not any(reading.is_signed_by(shown, one) for one in reading.split(self._identity.authority.read_bytes())):
            raise Impostor(f"who answers as node {node} has no certificate of this cluster")


def _certificate(writer: asyncio.StreamWriter) -> x509.Certificate | None:
    tls: Any = writer.get_extra_info("ssl_object")
    shown = tls.getpeercert(binary_form=True) if tls is not None else None
    return x509.load_der_x509_certificate(shown) if shown else None


def _node_in(certificate: x509.Certificate | None) -> str:
    """Empty for everybody who is no node."""
    if certificate is None:
        return ""
    groups = [one.value for one in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    is_node = GROUP in groups and len(names) == 1 and names[0].startswith(PREFIX)
    return names[0].removeprefix(PREFIX) if is_node else ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
