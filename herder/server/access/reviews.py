"""Questions about access, asked as objects that are never stored: may I, may they, who am I, whose token is this."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from herder.api.problems import Problem, invalid
from herder.api.world import timestamp
from herder.server import status
from herder.server.access.access import Access
from herder.server.access.accounts import AUDIENCES, InvalidToken
from herder.server.access.attributes import Attributes, selected
from herder.server.access.nodes.identity import node_of
from herder.server.bodies import read_document
from herder.server.metadata import metadata_of
from herder.server.presenting import one
from herder.server.request import Answer, Request, Target, User
from herder.server.served import Served

if TYPE_CHECKING:
    from herder.server.engine import Engine

Document = dict[str, Any]
_NOT_BOTH = "cannot be specified in combination with resourceAttributes"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


async def review(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """POST: the same object, with an answer in its status."""
    document, _ = read_document(request, served)
    _ = request.dry_run  # refused where it makes no sense; nothing is stored either way
    metadata_of(document)
    answer = _ANSWERS[served.resource.kind](engine, served, target, request.user, document)
    return one(request, served, msgspec.json.encode({**document, **answer}) + b"\n", engine.world.now(), 201)


# --- authorization.k8s.io --------------------------------------------------------------------------------------------------------


def _own_access(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    spec = document.get("spec") or {}
    _refuse(served, [*_one_question(spec), *_empty_metadata(document, "must be empty")])
    return _decided(engine.access, user, spec)


def _access(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    spec = document.get("spec") or {}
    _refuse(served, [*_one_question(spec), *_somebody(spec), *_empty_metadata(document, "must be empty")])
    return _decided(engine.access, _subject(spec), spec)


def _local_access(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    spec, metadata = document.get("spec") or {}, document["metadata"]
    named = metadata.setdefault("namespace", target.namespace)
    problems = [
        *_one_question(spec),
        *_somebody(spec),
        *_empty_metadata(document, "must be empty except for namespace", "namespace"),
    ]
    asked = spec.get("resourceAttributes")
    if asked is not None and asked.get("namespace", "") != named:
        place = "spec.resourceAttributes.namespace"
        problems.append(invalid(place, asked.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        why = "disallowed on this kind of request"
        problems.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], why))
    if named != target.namespace:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    _refuse(served, problems)
    return _decided(engine.access, _subject(spec), spec)


def _own_rules(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    namespace = (document.get("spec") or {}).get("namespace")
    if not namespace:
        raise status.bad_request("no namespace on request")
    rbac = engine.access.rbac
    rules = rbac.rules_for(user, namespace)
    problems = (*rbac.holdings(user, "").problems, *rbac.holdings(user, namespace).problems)
    node = node_of(user) is not None
    problems = (*problems, "node authorizer does not support user rule resolution") if node else problems
    found: Document = {
        "resourceRules": [rule.document() for rule in rules if rule.resources],
        "nonResourceRules": [rule.document() for rule in rules if rule.paths],
        "incomplete": node,
        **({"evaluationError": ", ".join(problems)} if problems else {}),
    }
    return {"spec": {}, "status": found}


def _one_question(spec: Document) -> list[Problem]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [invalid("spec.nonResourceAttributes", path, _NOT_BOTH)]
    return [invalid("spec.resourceAttributes", None, _ONE_OF)] if resource is None and path is None else []


def _somebody(spec: Document) -> list[Problem]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _empty_metadata(document: Document, why: str, *allowed: str) -> list[Problem]:
    metadata = {key: value for key, value in document["metadata"].items() if value and key not in ("managedFields", *allowed)}
    return [invalid("metadata", metadata, why)] if metadata else []


def _refuse(served: Served, problems: list[Problem]) -> None:
    if problems:
        raise status.invalid(served.resource, "", problems)


def _subject(spec: Document) -> User:
    return User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "")


def _decided(access: Access, user: User, spec: Document) -> Document:
    decision = access.decide(user, _asked(spec))
    return {"status": {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}}


def _asked(spec: Document) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(path.get("verb", ""), path.get("path", ""))
    asked = spec["resourceAttributes"]
    fields = ("group", "resource", "subresource", "namespace", "name")
    found = Attributes(asked.get("verb", ""), "", *(asked.get(field) or "" for field in fields))
    return msgspec.structs.replace(found, node=_selected_node(asked)) if asked.get("fieldSelector") else found


def _selected_node(asked: Document) -> str:
    """The node that a list would be limited to."""
    selector = asked["fieldSelector"]
    for wanted in selector.get("requirements") or ():
        if (wanted.get("key"), wanted.get("operator")) == ("spec.nodeName", "In") and len(wanted.get("values") or ()) == 1:
            return wanted["values"][0]
    return selected(selector.get("rawSelector"))[1]


# --- authentication.k8s.io -------------------------------------------------------------------------------------------------------


def _own_name(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    metadata = {"creationTimestamp": timestamp(engine.world.now())}
    return {"metadata": metadata, "status": {"userInfo": _about(user)}}


def _token(engine: Engine, served: Served, target: Target, user: User, document: Document) -> Document:
    spec = document.get("spec") or {}
    if not spec.get("token"):
        raise status.bad_request("token is required for TokenReview in authentication")
    try:
        found, audiences = engine.access.accounts.identify(spec["token"], tuple(spec.get("audiences") or AUDIENCES))
    except InvalidToken as error:
        return {"status": {"user": {}, "error": str(error)}}
    return {"status": {"authenticated": True, "user": _about(found), "audiences": list(audiences)}}


def _about(user: User) -> Document:
    known: Document = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
    return {field: value for field, value in known.items() if value}


Answerer = Callable[["Engine", Served, Target, User, Document], Document]
_ANSWERS: dict[str, Answerer] = {
    "SelfSubjectAccessReview": _own_access,
    "SubjectAccessReview": _access,
    "LocalSubjectAccessReview": _local_access,
    "SelfSubjectRulesReview": _own_rules,
    "SelfSubjectReview": _own_name,
    "TokenReview": _token,
}
