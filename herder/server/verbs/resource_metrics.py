"""GET of what nodes and pods use, one or many, as a metrics-server answers: what was not measured is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.duration import format_seconds
from herder.api.quantity import BINARY_SI, DECIMAL_SI, canonical
from herder.api.world import timestamp
from herder.server import status
from herder.server.engine import Engine
from herder.server.presenting import in_turns, many, one
from herder.server.request import Answer, Request, Target
from herder.server.resource_metrics import Measured
from herder.server.selectable import BUILTIN
from herder.server.selection import selection_of
from herder.server.served import Served
from herder.server.store import Record
from herder.server.store.records import key_of

Document = dict[str, Any]
# Of the stored object that it is about: what is known of its use, if anything is.
Show = Callable[[Engine, Record], Document | None]


async def get_measured(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    _check_ready(engine)
    record = engine.store.get(served.resource.plural, key_of(target.namespace, target.name))
    found = _SHOWN[served.resource.plural](engine, record) if record is not None else None
    if found is None:
        raise status.not_found(served.resource, target.name)
    return one(request, served, _encoded(served, found), engine.world.now())


async def list_measured(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """Selected as the nodes and pods themselves are: by their labels and fields."""
    _check_ready(engine)
    plural = served.resource.plural
    about = engine.registry.by_table(plural)
    assert about is not None, plural
    selection, show = selection_of(request, target, about), _SHOWN[plural]
    found: list[Record] = []
    async for record in in_turns(list(engine.store.scan(plural, selection.prefix))):
        if selection.matches(record) and (shown := show(engine, record)) is not None:
            found.append(Record(record.key, 0, _encoded(served, shown)))
    return await many(request, served, found, {}, engine.world.now())


def _check_ready(engine: Engine) -> None:
    if not engine.samples.ready:
        raise status.unavailable("no node has been asked twice yet what it uses; try again in some seconds")


def _node(engine: Engine, record: Record) -> Document | None:
    measured = engine.samples.node(record.name, engine.world.now())
    return None if measured is None else {**_head(engine, record, measured), "usage": _usage(measured)}


def _pod(engine: Engine, record: Record) -> Document | None:
    node = record.fields(BUILTIN["pods"].extract).get("spec.nodeName", "")
    containers = engine.samples.pod(node, record.uid, engine.world.now())
    if containers is None:
        return None
    last = max(containers.values(), key=lambda measured: measured.at)
    shown = [{"name": name, "usage": _usage(measured)} for name, measured in containers.items()]
    return {**_head(engine, record, last), "containers": shown}


_SHOWN: dict[str, Show] = {"nodes": _node, "pods": _pod}


def _head(engine: Engine, record: Record, measured: Measured) -> Document:
    metadata: Document = {"name": record.name, "creationTimestamp": timestamp(engine.world.now())}
    if record.namespace:
        metadata["namespace"] = record.namespace
    if record.labels:
        metadata["labels"] = record.labels
    window = format_seconds(round(measured.window, 3))
    return {"metadata": metadata, "timestamp": timestamp(measured.at), "window": window}


def _usage(measured: Measured) -> Document:
    cpu, memory = round(measured.cpu * 1e9), measured.memory_bytes * 10**9
    return {"cpu": canonical(cpu, DECIMAL_SI), "memory": canonical(memory, BINARY_SI)}


def _encoded(served: Served, found: Document) -> bytes:
    resource = served.resource
    return msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.group_version, **found})
