"""GET of a pod's log: asked of its node, and passed on as it comes."""

from __future__ import annotations

from herder.api.problems import forbidden, invalid
from herder.server.engine import Engine
from herder.server.request import Answer, Request, Response, Stream, Target
from herder.server.served import Served
from herder.server.status import invalid_kind
from herder.server.verbs.looking import look

PLAIN = "text/plain"
# The rest of a query is between the client and us.
ASKED_OF_THE_NODE = ("follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps")


# The least that each number may be.
LEAST = {"limitBytes": 1, "sinceSeconds": 1, "tailLines": 0}


async def read_log(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    check_options(request, target)
    looked = look(engine, served, target, request)
    if looked is None:
        return Response(204, b"", PLAIN)
    query = {name: request.query[name] for name in ASKED_OF_THE_NODE if request.query.get(name)}
    path, endless = looked.path("containerLogs"), request.flag("follow")
    answer = await looked.kubelets.get(looked.place, path, query, request.user, endless=endless)
    return Stream(answer.pieces, PLAIN, close=answer.close)


def check_options(request: Request, target: Target) -> None:
    asked = {name: request.number(name) for name in LEAST}
    problems = [
        invalid(name, number, "must be greater than or equal to 0" if LEAST[name] == 0 else "must be greater than 0")
        for name, number in asked.items()
        if number is not None and number < LEAST[name]
    ]
    if asked["sinceSeconds"] is not None and request.query.get("sinceTime"):
        problems.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if problems:
        raise invalid_kind("", "PodLogOptions", target.name, problems)
