"""POST serviceaccounts/NAME/token: a new token, for a time, for an audience, perhaps only as long as a pod lives."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from herder.api.problems import Problem, invalid
from herder.api.world import timestamp
from herder.server import status
from herder.server.access.accounts import AUDIENCES, ISSUER, account_name
from herder.server.access.tokens import Bound, Claims, Named
from herder.server.bodies import read_document
from herder.server.builtin_schemas import components, schema_for
from herder.server.metadata import metadata_of
from herder.server.presenting import one
from herder.server.request import Answer, Request, Target, User
from herder.server.resources import Resource
from herder.server.schema import compile_schema
from herder.server.served import Served
from herder.server.store import Record
from herder.server.store.records import key_of
from herder.server.strategies import BuiltinStrategy

if TYPE_CHECKING:
    from herder.server.engine import Engine

Document = dict[str, Any]
AN_HOUR = 3600
SHORTEST, LONGEST = 600, 1 << 32
PLACES = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
KIND = Resource(
    group="authentication.k8s.io",
    version="v1",
    plural="tokenrequests",
    singular="tokenrequest",
    kind="TokenRequest",
    namespaced=True,
)


@cache
def _served() -> Served:
    schema = compile_schema(schema_for(KIND.group, KIND.version, KIND.kind), components())
    return Served(KIND, schema, BuiltinStrategy(KIND))


async def create_token(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    document, _ = read_document(request, _served())
    _check_place(document, target)
    account = engine.store.get(served.table, key_of(target.namespace, target.name))
    if account is None:
        raise status.not_found(served.resource, target.name)
    _check_account(document, target, account)
    spec: Document = document.get("spec") or {}
    _check_node(engine, served, target, spec, request.user)
    seconds = AN_HOUR if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    _check_seconds(seconds)
    audiences = tuple(spec.get("audiences") or ()) or AUDIENCES
    reference = spec.get("boundObjectRef")
    bound = _bound(engine, target, account, reference) if reference else _unbound(target, account)
    now = engine.world.now()
    claims = Claims(
        *(audiences, int(now) + seconds, int(now), ISSUER, engine.world.uid(), bound, int(now)),
        sub=account_name(target.namespace, target.name),
    )
    metadata = {"name": account.name, "namespace": account.namespace, "uid": account.uid, "creationTimestamp": timestamp(now)}
    answer = {
        "kind": KIND.kind,
        "apiVersion": KIND.group_version,
        "metadata": {**metadata_of(document), **metadata},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
        "status": {"token": engine.access.accounts.signer.sign(claims), "expirationTimestamp": timestamp(now + seconds)},
    }
    return one(request, _served(), msgspec.json.encode(answer) + b"\n", now, 201)


def _check_node(engine: Engine, served: Served, target: Target, spec: Document, user: User) -> None:
    named = (spec.get("boundObjectRef") or {}).get("name") or ""
    pod = engine.store.get("pods", key_of(target.namespace, named)) if named else None
    engine.access.restriction.check_token(served, target.name, spec, pod.document() if pod else None, user)


def _check_place(document: Document, target: Target) -> None:
    metadata = metadata_of(document)
    for field, wanted in (("name", target.name), ("namespace", target.namespace)):
        said = metadata.get(field)
        if said and said != wanted:
            problem = invalid(f"metadata.{field}", said, f"must match the service account {field} if specified")
            raise status.invalid(KIND, target.name, [problem])


def _check_account(document: Document, target: Target, account: Record) -> None:
    uid = metadata_of(document).get("uid")
    if uid and uid != account.uid:
        why = f"the UID in the token request ({uid}) does not match the UID of the service account ({account.uid})"
        raise _conflict("TokenRequest", KIND.group, target.name, why)


def _check_seconds(seconds: int) -> None:
    problems: list[Problem] = []
    place = "spec.expirationSeconds"
    if seconds < SHORTEST:
        problems.append(invalid(place, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > LONGEST:
        problems.append(invalid(place, seconds, "may not specify a duration larger than 2^32 seconds"))
    if problems:
        raise status.invalid(KIND, "", problems)


def _unbound(target: Target, account: Record) -> Bound:
    return Bound(target.namespace, Named(account.name, account.uid))


def _bound(engine: Engine, target: Target, account: Record, reference: Document) -> Bound:
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    version = reference.get("apiVersion") or ""
    if "/" in version or kind not in PLACES:
        raise status.bad_request(f"cannot bind token to object of type {version}, Kind={kind}")
    record = _found(engine, PLACES[kind], "" if kind == "Node" else target.namespace, name)
    node = _check_pod(engine, target, record) if kind == "Pod" else None
    uid = reference.get("uid")
    if uid and uid != record.uid:
        again = "The object might have been deleted and then recreated"
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. {again}"
        raise _conflict(kind, "", name, why)
    to = Named(record.name, record.uid)
    parts = {"Pod": {"pod": to, "node": node}, "Secret": {"secret": to}, "Node": {"node": to}}
    return Bound(target.namespace, Named(account.name, account.uid), **parts[kind])


def _found(engine: Engine, plural: str, namespace: str, name: str) -> Record:
    record = engine.store.get(plural, key_of(namespace, name))
    if record is None:
        raise status.not_found(engine.served("", "v1", plural).resource, name)
    return record


def _check_pod(engine: Engine, target: Target, record: Record) -> Named | None:
    """A pod's token is one of its own account; it also tells the node that the pod is on."""
    spec: Document = record.document()["spec"]
    if spec.get("serviceAccountName", "") != target.name:
        why = f'cannot bind token for serviceaccount "{target.name}" to pod running with different serviceaccount name.'
        raise status.bad_request(why)
    name = spec.get("nodeName")
    if not name:
        return None
    node = engine.store.get("nodes", name)
    return Named(name, node.uid if node else "")


def _conflict(kind: str, group: str, name: str, why: str) -> status.ApiError:
    qualified = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind}
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return status.ApiError(409, "Conflict", message, {field: value for field, value in details.items() if value})
