"""Who may look into the pods of a node. Everybody of a cluster has a certificate of one authority: it says only who they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import msgspec

from herder.kube.client import Client
from herder.kube.errors import error_from
from herder.kube.transport import Call

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AUTHENTICATED = "system:authenticated"


class Caller(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()


class Callers(Protocol):
    async def refusal(self, caller: Caller, verb: str, node: str) -> str:
        """Why not; empty where they may. Without a node: whether they may on every one."""
        ...


class Named:
    """Where the API server is ours: we know what it is called."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    async def refusal(self, caller: Caller, verb: str, node: str) -> str:
        return "" if caller.name in self._names else f"{caller.name!r} is not the API server; ask that one, it knows who may look"


class Reviewed:
    """On any other cluster the API server itself is asked, as a kubelet does: whoever may use `nodes/proxy`. Raises KubeError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def refusal(self, caller: Caller, verb: str, node: str) -> str:
        wanted = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": "proxy", **({"name": node} if node else {})}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": caller.name, "groups": [*caller.groups, AUTHENTICATED], "resourceAttributes": wanted},
        }
        reply = await self._client.transport.send(Call("POST", REVIEWS, body=msgspec.json.encode(review)))
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        if (msgspec.json.decode(reply.body).get("status") or {}).get("allowed"):
            return ""
        return f"{caller.name!r} may not {verb} nodes/proxy {node}".rstrip()


def caller_of(certificate: Any) -> Caller:
    """One part of a subject may hold several values, as Go writes organisations."""
    fields: list[tuple[str, str]] = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for field, value in fields if field == "commonName"), "")
    return Caller(name, tuple(value for field, value in fields if field == "organizationName"))
