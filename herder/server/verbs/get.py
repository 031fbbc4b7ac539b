"""GET of one object."""

from __future__ import annotations

from herder.server import status
from herder.server.engine import Engine
from herder.server.presenting import one, shown
from herder.server.request import Answer, Request, Target
from herder.server.revisions import parse_revision, wait_for_revision
from herder.server.served import Served
from herder.server.store.records import key_of


async def get(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    asked = parse_revision(request.query.get("resourceVersion"))
    if asked:
        await wait_for_revision(engine, asked)
    record = engine.store.get(served.table, key_of(target.namespace, target.name))
    if record is None:
        raise status.not_found(served.resource, target.name)
    return one(request, served, shown(served, record), engine.world.now())
