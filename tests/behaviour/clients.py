"""Our own client against an engine, and the kubeconfigs that lead it there."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from herder.kube.client import Client
from herder.kube.connect import Surroundings, connect
from herder.kube.transport import Call, Transport
from tests.engines.engine import Engine

Json = dict[str, Any]
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def cluster_of(engine: Engine, **more: Any) -> Json:
    return {"server": engine.server, "certificate-authority": str(engine.ca), **more}


def admin_of(engine: Engine, **more: Any) -> Json:
    return {"client-certificate": str(engine.client_certificate), "client-key": str(engine.client_key), **more}


def write_kubeconfig(path: Path, cluster: Json, user: Json, **context: Any) -> Path:
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
        "current-context": "x",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def around(home: Path, environment: Mapping[str, str] | None = None, account: Path | None = None) -> Surroundings:
    """A machine with nothing on it but what the test says."""
    return Surroundings(environment or {}, home, account or home / "no-account")


@asynccontextmanager
async def connected(path: Path | None, context: str | None = None, where: Surroundings | None = None) -> AsyncGenerator[Client]:
    async with Client(connect(path, context, "herder-test", where), "herder-test") as client:
        yield client


async def who(transport: Transport) -> tuple[str, list[str]]:
    """The user and the groups that the server takes us for."""
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    reply = await transport.send(Call("POST", WHO_AM_I, body=body))
    known = json.loads(reply.body).get("status", {}).get("userInfo", {})
    assert reply.status == 201, reply.body
    return known["username"], known["groups"]
