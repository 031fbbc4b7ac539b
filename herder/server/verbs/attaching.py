"""The console of a pod: a WebSocket to the client and one to its node, joined."""

from __future__ import annotations

import asyncio

import aiohttp
import structlog
from aiohttp import WSMsgType, web

from herder.api.streaming import Wanted, why_not
from herder.server import status
from herder.server.engine import Engine
from herder.server.kubelets import HEARTBEAT, NodeConsole
from herder.server.request import Answer, Request, Target, Upgrade
from herder.server.served import Served
from herder.server.store.records import key_of
from herder.server.verbs.looking import look

log = structlog.get_logger()
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
# What a client calls it, and what a node does.
STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
Socket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


async def attach(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    if request.method == "GET":
        # To type into a machine is more than to read, by whichever method it is asked.
        engine.access.authorize(request, target, "create")
    if refusal := _refusal(engine, served, target, "attach"):
        raise refusal
    looked = look(engine, served, target, request)
    assert looked is not None, "it has a node"
    protocol = _protocol(request)
    query = {theirs: "1" for ours, theirs in STREAMS.items() if request.flag(ours)}
    node = await looked.kubelets.connect(looked.place, looked.path("attach"), query, request.user, protocol)
    return Upgrade(lambda incoming: _join(incoming, node, protocol))


async def refuse_exec(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    raise _refusal(engine, served, target, "exec") or AssertionError("nothing can be run anywhere")


async def refuse_port_forward(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    raise _refusal(engine, served, target, "portforward") or AssertionError("nobody passes on connections")


def _refusal(engine: Engine, served: Served, target: Target, wanted: Wanted) -> status.ApiError | None:
    """Whatever its node would say: what a pod cannot give, it gives nowhere."""
    record = engine.store.get(served.table, key_of(target.namespace, target.name))
    if record is None:
        return status.not_found(served.resource, target.name)
    pod = record.document()
    if not pod["spec"].get("nodeName"):
        return status.bad_request(f"pod {target.name} does not have a host assigned")
    why = why_not(wanted, target.namespace, target.name, pod["metadata"].get("annotations") or {})
    return status.bad_request(why) if why else None


def _protocol(request: Request) -> str:
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise status.bad_request("Upgrade request required: a console is only given over a WebSocket")
    offered = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    found = next((one for one in PROTOCOLS if one in offered), None)
    if found is None:
        raise status.bad_request(f"Sec-WebSocket-Protocol: {', '.join(offered)!r}: should be one of {', '.join(PROTOCOLS)}")
    return found


async def _join(incoming: web.BaseRequest, node: NodeConsole, protocol: str) -> web.StreamResponse:
    client = web.WebSocketResponse(protocols=(protocol,), heartbeat=HEARTBEAT)
    try:
        await client.prepare(incoming)
        ways = [asyncio.create_task(_pass_on(client, node.socket)), asyncio.create_task(_pass_on(node.socket, client))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for problem in await asyncio.gather(*ways, return_exceptions=True):
            if isinstance(problem, Exception) and not isinstance(problem, ConnectionError | aiohttp.ClientError):
                log.error("a console broke off", path=incoming.path, error=str(problem), exc_info=problem)
        await client.close()
    finally:
        await node.close()
    return client


async def _pass_on(source: Socket, sink: Socket) -> None:
    async for message in source:
        if message.type is WSMsgType.BINARY:
            await sink.send_bytes(message.data)
        elif message.type is WSMsgType.TEXT:
            await sink.send_str(message.data)
