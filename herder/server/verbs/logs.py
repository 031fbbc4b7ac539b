"""GET of a pod's log: asked of its node, and passed on as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp

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
    answer = await looked.kubelets.get(looked.place, looked.path("containerLogs"), query)
    return Stream(lambda: _pieces(answer), PLAIN, close=answer.close)


async def _pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.content.iter_any():
            yield piece
    except aiohttp.ClientError:
        pass  # the node has gone: that was all
