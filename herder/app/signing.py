"""Certificates that a cluster signs: asked for by a CertificateSigningRequest, which somebody has to approve."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from herder.app.refusal import CANNOT_USE_CLUSTER, Refusal
from herder.kube.errors import error_from
from herder.kube.transport import Call, Transport
from herder.server.access.nodes.identity import NODES, PREFIX

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LOOK_AGAIN = 0.5
Document = dict[str, Any]


class Wish(msgspec.Struct, frozen=True):
    """A certificate of a node, for one of Kubernetes' own signers."""

    node: str
    prefix: str  # of the request's name
    signer: str
    usage: str
    # Names and addresses at which the node can be found.
    hosts: tuple[str, ...] = ()


async def ask(transport: Transport, wish: Wish, key: ec.EllipticCurvePrivateKey) -> str:
    """The name of the request. Raises KubeError; NotFound where the server signs no certificates at all."""
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": f"{wish.prefix}{wish.node}-"},
        "spec": {
            "request": base64.b64encode(_request(wish, key)).decode(),
            "signerName": wish.signer,
            # Without the second QEMU takes no certificate, though TLS needs it no more.
            "usages": ["digital signature", "key encipherment", wish.usage],
        },
    }
    reply = await transport.send(Call("POST", REQUESTS, body=msgspec.json.encode(body)))
    if reply.status >= 400:
        raise error_from(reply.status, reply.body)
    return msgspec.json.decode(reply.body)["metadata"]["name"]


async def signed(transport: Transport, name: str) -> bytes:
    """Waits until somebody approves. Raises Refusal where they deny it."""
    while True:
        reply = await transport.send(Call("GET", f"{REQUESTS}/{name}"))
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        status: Document = msgspec.json.decode(reply.body).get("status") or {}
        if status.get("certificate"):
            return base64.b64decode(status["certificate"])
        for condition in status.get("conditions") or ():
            if condition["type"] in ("Denied", "Failed"):
                why = condition.get("message") or condition.get("reason") or "no reason was given"
                raise Refusal(f"{name} was {condition['type'].lower()}: {why}", CANNOT_USE_CLUSTER)
        await asyncio.sleep(LOOK_AGAIN)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _request(wish: Wish, key: ec.EllipticCurvePrivateKey) -> bytes:
    name = x509.NameAttribute(NameOID.COMMON_NAME, PREFIX + wish.node)
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, NODES), name])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if wish.hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in wish.hosts]), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
