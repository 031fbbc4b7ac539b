"""`herder node join`: asks a cluster to sign a certificate for a node, and writes the kubeconfig of its agent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from herder.app.cluster import connect_to
from herder.app.kubeconfig import check_holds_only, write_with
from herder.app.refusal import CANNOT_USE_CLUSTER, CANNOT_USE_FILE, Refusal
from herder.kube.access import choose
from herder.kube.errors import KubeError, Misconfigured, error_from
from herder.kube.kubeconfig import Cluster, read
from herder.kube.transport import Call, Transport
from herder.pki.authority import Pair
from herder.server.access.nodes.identity import NODES, PREFIX

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
LOOK_AGAIN = 0.5
Document = dict[str, Any]
Say = Callable[[str], None]


async def join(kubeconfig: Path, context: str | None, node: str, path: Path, say: Say) -> None:
    """Waits until somebody approves. Raises Refusal with a sentence."""
    check_holds_only(path, PREFIX + node)
    cluster, authority = _cluster(kubeconfig, context)
    transport = connect_to(kubeconfig, context, "herder-node-join")
    try:
        key = ec.generate_private_key(ec.SECP256R1())
        name = await _ask(transport, node, _request(node, key))
        say(f"approve it, if nothing does so by itself:\n\n  kubectl certificate approve {name}\n")
        pair = Pair(await _signed(transport, name), _private(key))
    except KubeError as error:
        raise Refusal(f"no certificate could be asked for: {error}", CANNOT_USE_CLUSTER) from None
    finally:
        await transport.close()
    write_with(path, cluster.server, authority, PREFIX + node, pair)


def _cluster(kubeconfig: Path, context: str | None) -> tuple[Cluster, bytes]:
    """Where it is, and whom it is known by."""
    try:
        cluster = choose(read(kubeconfig), context, str(kubeconfig)).cluster
        file = kubeconfig.parent / cluster.certificate_authority
        return cluster, cluster.certificate_authority_data or (file.read_bytes() if cluster.certificate_authority else b"")
    except (Misconfigured, OSError) as error:
        raise Refusal(f"--kubeconfig {kubeconfig}: {error}", CANNOT_USE_FILE) from None


def _request(node: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, NODES), x509.NameAttribute(NameOID.COMMON_NAME, PREFIX + node)]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject)).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


async def _ask(transport: Transport, node: str, request: bytes) -> str:
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": f"herder-node-{node}-"},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }
    reply = await transport.send(Call("POST", REQUESTS, body=msgspec.json.encode(body)))
    if reply.status == 404:
        how = f"`herder user add {PREFIX}{node} --group {NODES}` makes the kubeconfig on the machine of an embedded engine"
        raise Refusal(f"this server signs no certificates; {how}", CANNOT_USE_CLUSTER)
    if reply.status >= 400:
        raise error_from(reply.status, reply.body)
    return msgspec.json.decode(reply.body)["metadata"]["name"]


async def _signed(transport: Transport, name: str) -> bytes:
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
