"""People and programs that are not the administrator: with certificates of the engine's own authority, and with tokens."""

import asyncio
import datetime
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.engines.api import Api, Json
from tests.engines.certificates import Pair, write_key
from tests.engines.engine import Engine
from tests.engines.processes import server_context
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
RBAC = "rbac.authorization.k8s.io"


def _authority(engine: Engine) -> tuple[Path, Path]:
    """The certificate and the key that sign clients of this engine."""
    places = (engine.ca.parent, engine.kubeconfig.parent / "data" / "pki", engine.kubeconfig.parent / "pki")
    folder = next(place for place in places if (place / "ca.key").exists())
    return folder / "ca.crt", folder / "ca.key"


def sign(engine: Engine, folder: Path, name: str, *groups: str, days: float = 1.0) -> Pair:
    certificate, key_file = _authority(engine)
    issuer = x509.load_pem_x509_certificate(certificate.read_bytes())
    signing: Any = serialization.load_pem_private_key(key_file.read_bytes(), None)
    pair = Pair(folder / f"{uuid.uuid4().hex}.crt", folder / f"{uuid.uuid4().hex}.key")
    key: ec.EllipticCurvePrivateKey = write_key(pair.key)
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes += [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(x509.Name(attributes)).issuer_name(issuer.subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=2)).not_valid_after(now + datetime.timedelta(days=days))
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
    pair.certificate.write_bytes(builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return pair


@asynccontextmanager
async def with_certificate(engine: Engine, name: str, *groups: str, days: float = 1.0) -> AsyncGenerator[Api]:
    with TemporaryDirectory() as folder:
        pair = sign(engine, Path(folder), name, *groups, days=days)
        context = server_context(engine)
        context.load_cert_chain(pair.certificate, pair.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield Api(engine, session)


@asynccontextmanager
async def with_token(engine: Engine, token: str) -> AsyncGenerator[Api]:
    connector = aiohttp.TCPConnector(ssl=server_context(engine))
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"}) as session:
        yield Api(engine, session)


async def token_for(api: Api, namespace: str, account: str, **spec: Any) -> str:
    return (await request_token(api, namespace, account, **spec))["status"]["token"]


async def request_token(api: Api, namespace: str, account: str, **spec: Any) -> Json:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return (await api.request("POST", SERVICE_ACCOUNTS.path(namespace, account, "token"), body)).ok


def rule(verbs: str, resources: str, group: str = "", *names: str) -> Json:
    """`rule("get list", "pods pods/log")`"""
    named = {"resourceNames": list(names)} if names else {}
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split(), **named}


def user(name: str) -> Json:
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def group(name: str) -> Json:
    return {"kind": "Group", "name": name, "apiGroup": RBAC}


def account(namespace: str, name: str) -> Json:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def binding(name: str, role: str, *subjects: Json, kind: str = "ClusterRole") -> Json:
    reference = {"apiGroup": RBAC, "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}


async def grant(api: Api, namespace: str, subject: Json, *rules: Json) -> str:
    """A role of these rules and its binding, in a namespace or ("") everywhere; the name of both."""
    name = f"granted-{uuid.uuid4().hex[:8]}"
    role, bound, kind = (ROLES, ROLE_BINDINGS, "Role") if namespace else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, "ClusterRole")
    (await api.create(role, {"metadata": {"name": name}, "rules": list(rules)}, namespace)).ok  # noqa: B018
    (await api.create(bound, binding(name, name, subject, kind=kind), namespace)).ok  # noqa: B018
    await until_allowed(api, namespace, subject, rules[-1])
    return name


async def bind(api: Api, namespace: str, role: str, subject: Json, example: Json) -> str:
    """An existing ClusterRole for somebody; waits until `example`, one of its rules, can be used."""
    name = f"bound-{uuid.uuid4().hex[:8]}"
    bound = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
    (await api.create(bound, binding(name, role, subject), namespace)).ok  # noqa: B018
    await until_allowed(api, namespace, subject, example)
    return name


async def until_allowed(api: Api, namespace: str, subject: Json, example: Json, allowed: bool = True) -> None:
    """A real API server hears of new roles a moment after they are stored."""
    if "nonResourceURLs" in example:
        question = {"nonResourceAttributes": {"verb": example["verbs"][0], "path": example["nonResourceURLs"][0].replace("*", "x")}}
    else:
        resource, _, subresource = example["resources"][0].partition("/")
        attributes = {"namespace": namespace, "verb": example["verbs"][0], "group": example["apiGroups"][0], "resource": resource}
        named = {"name": example["resourceNames"][0]} if "resourceNames" in example else {}
        question = {"resourceAttributes": {**attributes, "subresource": subresource, **named}}
    body = {"spec": {**_who(subject), **question}}
    for _ in range(200):
        if (await api.create(ACCESS_REVIEWS, body)).ok["status"]["allowed"] is allowed:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"after 10 s {subject} {'may not' if allowed else 'may still'} {example}")


def _who(subject: Json) -> Json:
    if subject["kind"] == "Group":
        return {"groups": [subject["name"]]}
    if subject["kind"] == "ServiceAccount":
        return {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}"}
    return {"user": subject["name"]}
