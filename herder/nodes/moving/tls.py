"""A link between machines: TLS in which both sides show a certificate of the cluster's authority that is a node's.

It is the subject that counts (`system:node:NAME` in `system:nodes`), not the address: who is asked must be the very node that is
meant, and who asks must be some node of the cluster, whose name is passed on.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from herder.nodes.moving.door import Door, peer_of
from herder.nodes.moving.link import Answering, Impostor, Unreachable
from herder.nodes.moving.messages import Answer, Request
from herder.nodes.moving.papers import Identity, Lacking, Papers, node_in
from herder.nodes.moving.streams import Caller, Streams

SCHEME = "tls:"


class TlsLink:
    def __init__(self, listener: socket.socket, papers: Papers) -> None:
        """The listener is bound to the address at which others reach us."""
        host, port = listener.getsockname()[:2]
        self.address = f"{SCHEME}[{host}]:{port}" if ":" in host else f"{SCHEME}{host}:{port}"
        self._papers = papers
        self._caller = Caller()
        self._door = Door(listener, lambda: _listening(papers.server()))

    @property
    def closed(self) -> str:
        try:
            self._papers.server()
        except Lacking as why:
            return str(why)
        return ""

    async def open(self, answering: Answering) -> None:
        self._door.open(answering)

    async def ask(self, address: str, node: str, request: Request) -> Answer:
        if not address.startswith(SCHEME):
            raise Unreachable(f"this node reaches others over the network, and {address} is no address there")
        host, _, port = address.removeprefix(SCHEME).rpartition(":")

        async def dial() -> Streams:
            try:
                tls = _calling(self._papers.client())
                streams = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
            except ssl.SSLCertVerificationError as error:
                raise Impostor(f"who answers as node {node} has no certificate of this cluster: {error.verify_message}") from None
            except Lacking as why:
                raise Unreachable(str(why)) from None
            if node_in(peer_of(streams)) != node:
                streams[1].close()
                raise Impostor(f"who answers is not node {node}")
            return streams

        try:
            # Known by the node as well: what was opened to one is never used for another.
            return await self._caller.ask(f"{node} at {address}", dial, request)
        except ValueError as error:
            raise Unreachable(f"{address}: {error}") from None

    async def close(self) -> None:
        self._caller.close()
        await self._door.close()


def _listening(identity: Identity) -> ssl.SSLContext:
    return _known_by(identity, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def _calling(identity: Identity) -> ssl.SSLContext:
    return _known_by(identity, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _known_by(identity: Identity, context: ssl.SSLContext) -> ssl.SSLContext:
    """Raises `Lacking`."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # It is a node that is asked for, wherever it is: `node_in`.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # As Go reads certificates: an authority need not be a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(identity.authority)
        # A password is never asked for: nobody may be there to answer.
        context.load_cert_chain(identity.certificate, identity.key, password="")
    except (OSError, ValueError) as error:
        raise Lacking(f"{identity.certificate} cannot be used: {error}") from None
    return context
