"""Orders to an object: what is posted to a subresource that only acts, such as a binding or an eviction."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from herder.api.world import timestamp
from herder.server import status
from herder.server.bodies import as_object, check_fields, check_kind, parse, read_limited, write_type
from herder.server.builtin_schemas import components, schema_for
from herder.server.metadata import metadata_of
from herder.server.presenting import accepted, body
from herder.server.request import Answer, Request, Target
from herder.server.resources import Resource
from herder.server.schema import compile_schema
from herder.server.served import Served
from herder.server.strategies import BuiltinStrategy

Document = dict[str, Any]


@cache
def served_order(group: str, kind: str) -> Served:
    """An order has a schema as every kind has, though nothing of it is ever stored."""
    resource = Resource(group=group, version="v1", plural=f"{kind.lower()}s", singular=kind.lower(), kind=kind, namespaced=True)
    schema = compile_schema(schema_for(group, "v1", kind), components())
    return Served(resource, schema, BuiltinStrategy(resource))


def read_order(request: Request, target: Target, served: Served, also: tuple[str, ...] = ()) -> Document:
    """`also`: other versions whose orders look the same and are taken, too."""
    parsed = parse(read_limited(request), write_type(request))
    document = as_object(parsed.value)
    if document.get("apiVersion") in also:
        document["apiVersion"] = served.resource.group_version
    check_kind(document, served)
    check_fields(request, served, document, parsed.raw, parsed.doubled)
    named = metadata_of(document).get("namespace")
    if named and named != target.namespace:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return document


def check_name(document: Document, target: Target, kind: str) -> None:
    if metadata_of(document).get("name") != target.name:
        raise status.bad_request(f"name in URL does not match name in {kind} object")


def carried_out(request: Request) -> Answer:
    told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return body(accepted(request), msgspec.json.encode(told) + b"\n", 201)


def set_condition(obj: Document, kind: str, now: float, **more: str) -> None:
    """True from now on; the time stays where it was true already."""
    conditions: list[Document] = obj.setdefault("status", {}).setdefault("conditions", [])
    before = next((one for one in conditions if one.get("type") == kind), None)
    same = before is not None and before.get("status") == "True"
    since = before.get("lastTransitionTime") if same and before else timestamp(now)
    condition: Document = {"type": kind, "status": "True", "lastTransitionTime": since, **more}
    if before is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(before)] = condition
