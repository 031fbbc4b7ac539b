"""GET of a pod's log: asked of its node, and passed on as it comes."""

from __future__ import annotations

from herder.server.engine import Engine
from herder.server.request import Answer, Request, Response, Stream, Target
from herder.server.served import Served
from herder.server.verbs.looking import look

PLAIN = "text/plain"
# The rest of a query is between the client and us.
ASKED_OF_THE_NODE = ("follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps")


async def read_log(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    looked = look(engine, served, target, request)
    if looked is None:
        return Response(200, b"", PLAIN)
    query = {name: request.query[name] for name in ASKED_OF_THE_NODE if request.query.get(name)}
    path, endless = looked.path("containerLogs"), request.flag("follow")
    answer = await looked.kubelets.get(looked.place, path, query, request.user, endless=endless)
    return Stream(answer.pieces, PLAIN, close=answer.close)
