"""Who may look into the pods of a node. A certificate of the cluster's authority, or a token, says only who somebody is."""

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
    # What else the API server said of whoever has a token: authorizers may go by it.
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """What somebody asks of a node, in the words of access rules. Without a node: of every one."""

    verb: str
    node: str = ""
    subresource: str = "proxy"


class Callers(Protocol):
    async def refusal(self, caller: Caller, wanted: Wanted) -> str:
        """Why not; empty where they may."""
        ...


class Named:
    """Where the API server is ours: we know what it is called."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    async def refusal(self, caller: Caller, wanted: Wanted) -> str:
        return "" if caller.name in self._names else f"{caller.name!r} is not the API server; ask that one, it knows who may look"


class Reviewed:
    """On any other cluster the API server itself is asked, as a kubelet does: whoever may use `nodes/proxy`, and for what it
    measures `nodes/metrics` or `nodes/stats`. Raises KubeError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def refusal(self, caller: Caller, wanted: Wanted) -> str:
        named = {"name": wanted.node} if wanted.node else {}
        asked = {"verb": wanted.verb, "version": "v1", "resource": "nodes", "subresource": wanted.subresource, **named}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**_who(caller), "resourceAttributes": asked},
        }
        reply = await self._client.transport.send(Call("POST", REVIEWS, body=msgspec.json.encode(review)))
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        if (msgspec.json.decode(reply.body).get("status") or {}).get("allowed"):
            return ""
        return f"{caller.name!r} may not {wanted.verb} nodes/{wanted.subresource} {wanted.node}".rstrip()


def _who(caller: Caller) -> dict[str, Any]:
    groups = [*(group for group in caller.groups if group != AUTHENTICATED), AUTHENTICATED]
    more = {"uid": caller.uid, "extra": dict(caller.extra)} if caller.uid or caller.extra else {}
    return {"user": caller.name, "groups": groups, **more}


def caller_of(certificate: Any) -> Caller:
    """One part of a subject may hold several values, as Go writes organisations."""
    fields: list[tuple[str, str]] = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for field, value in fields if field == "commonName"), "")
    return Caller(name, tuple(value for field, value in fields if field == "organizationName"))
