"""The HTTPS endpoint of all nodes of a process. It is for the API server, which has asked who may look."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, Protocol

import structlog
from aiohttp import web

from herder.api.core import Pod
from herder.api.streaming import Wanted, why_not
from herder.api.world import World
from herder.kube.errors import KubeError
from herder.net.bad_requests import server_log
from herder.net.crowd import Limits, limits_of
from herder.net.files import file_limit
from herder.net.listener import Listener
from herder.net.occasional import Occasional
from herder.nodes.endpoint import resource_metrics, summary
from herder.nodes.endpoint.callers import Caller, Callers, caller_of
from herder.nodes.endpoint.callers import Wanted as Asked
from herder.nodes.endpoint.channels import PROTOCOLS, failure, join, tell
from herder.nodes.endpoint.logs import read_log
from herder.nodes.endpoint.options import Unanswerable, log_options
from herder.nodes.endpoint.tokens import Refused, Tokens, bearer
from herder.nodes.endpoint.usage import NodeUsage, Usages
from herder.nodes.work import HasConsole, HasLog, Work

log = structlog.get_logger()
STOP_PATIENCE = 1.0
# Each is a log or a console that somebody has open. No more than a part of what the process may have: guests need files, too.
MOST_CONNECTIONS = 1000
# For the head of the next request.
HEAD_PATIENCE = 90.0
# A client that went away without a word is noticed by what it does not answer.
HEARTBEAT = 30.0
_STREAMED = ("/attach/", "/exec/", "/portForward/")
# What is asked for is more than to look into a pod, or less: as a kubelet tells them apart.
_SUBRESOURCES = {"/metrics/": "metrics", "/stats/": "stats"}
NOBODY = "who asks has to say who they are: by a certificate of the cluster's authority, or by a token (Authorization: Bearer ...)"
_ANSWERS = {401: web.HTTPUnauthorized, 403: web.HTTPForbidden, 429: web.HTTPTooManyRequests}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pods(Protocol):
    def find(self, namespace: str, name: str) -> tuple[Pod, Work | None] | None:
        """A pod of ours, and what runs it; nothing does where a node has no such work."""
        ...

    def nodes(self) -> Collection[str]:
        """Those of one process may be thousands: to look whether one is among them costs the same for all."""
        ...

    def pods_on(self, node: str) -> list[tuple[Pod, Work]]: ...


def server_tls(certificate: Path, key: Path, authority: Path, *, tokens: bool = False) -> ssl.SSLContext:
    """Whoever shows no certificate of the cluster's authority is not even asked what they want; but where `tokens` are taken, those
    who show none at all."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_OPTIONAL if tokens else ssl.CERT_REQUIRED
    return context


class Endpoint:
    def __init__(
        self,
        tls: ssl.SSLContext,
        callers: Callers,
        world: World,
        limits: Limits | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """`tokens` knows those who come without a certificate; where there is none, nobody does."""
        self._callers = callers
        self._tokens = tokens
        self._world = world
        self._listener = Listener(limits or limits_of(min(MOST_CONNECTIONS, file_limit() // 4)), tls)
        self._sent_away = Occasional(log)
        self._places: list[Pods] = []
        self._usages = Usages(world)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def connections(self) -> int:
        return self._listener.crowd.known + self._listener.crowd.strangers

    def add(self, pods: Pods) -> None:
        self._places.append(pods)

    async def start(self, listener: socket.socket) -> None:
        app = web.Application(middlewares=[self._listener.middleware, self._only_callers])
        app.router.add_get("/healthz", self._healthy)
        app.router.add_get("/metrics/resource", self._resource_metrics)
        app.router.add_get("/stats/summary", self._summary)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        for method in ("GET", "POST"):
            app.router.add_route(method, "/attach/{namespace}/{pod}/{container}", self._attach)
            app.router.add_route(method, "/exec/{namespace}/{pod}{rest:.*}", self._refuse_exec)
            app.router.add_route(method, "/portForward/{namespace}/{pod}{rest:.*}", self._refuse_port_forward)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=server_log(),
            handler_cancellation=True,
            shutdown_timeout=STOP_PATIENCE,
            keepalive_timeout=HEAD_PATIENCE,
        )
        await self._runner.setup()
        assert self._runner.server is not None
        self.port = listener.getsockname()[1]
        self._listener.start(listener, self._runner.server)

    async def stop(self) -> None:
        self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _only_callers(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        certificate: Any = request.get_extra_info("peercert") or {}
        try:
            caller = await (self._shown(certificate, request) if certificate else self._by_token(request))
        except KubeError as error:
            raise web.HTTPServiceUnavailable(text=f"nobody can say who may look: {error}") from None
        # Certificates are few. Every pod has a token: those who come with one have their share of the places.
        if problem := self._listener.recognise(request.transport, caller.name, privileged=bool(certificate)):
            raise web.HTTPTooManyRequests(text=problem)
        try:
            return await handler(request)
        except ConnectionError:
            return web.Response(status=500)  # whoever asked has left, and hears nothing of this

    async def _shown(self, certificate: Any, request: web.Request) -> Caller:
        caller = caller_of(certificate)
        if ssl.cert_time_to_seconds(certificate["notAfter"]) < self._world.now():
            raise web.HTTPForbidden(text=f"the certificate of {caller.name!r} is no longer good")
        if refusal := await self._callers.refusal(caller, self._asked(request)):
            raise self._turned_away(403, refusal, caller.name, request)
        return caller

    async def _by_token(self, request: web.Request) -> Caller:
        token = bearer(request.headers.get("Authorization", ""))
        if self._tokens is None or not token:
            raise self._turned_away(401, NOBODY, "", request)
        try:
            return await self._tokens.admit(token, request.remote or "", self._asked(request))
        except Refused as refused:
            raise self._turned_away(refused.status, str(refused), refused.caller, request) from None

    def _turned_away(self, status: int, why: str, name: str, request: web.Request) -> web.HTTPException:
        self._sent_away("somebody who may not look was sent away", name=name, path=request.path, status=status)
        return _ANSWERS[status](text=why, headers={"WWW-Authenticate": "Bearer"} if status == 401 else None)

    def _asked(self, request: web.Request) -> Asked:
        subresource = next((name for path, name in _SUBRESOURCES.items() if request.path.startswith(path)), "proxy")
        if subresource != "proxy":
            node = self._node(request)
            # What is none of ours is asked for of every node: a made-up name must be no new question each time.
            return Asked(_verb(request), node if self._place_of(node) is not None else "", subresource)
        found = self._find(request)
        return Asked(_verb(request), (found[0].spec.node_name or "") if found is not None else "")

    async def _resource_metrics(self, request: web.Request) -> web.StreamResponse:
        names = request.query.getall("node", [])
        text = await self._of_several(names) if len(names) > 1 else resource_metrics.text(self._measured(request))
        return web.Response(text=text, headers={"Content-Type": resource_metrics.CONTENT_TYPE})

    async def _of_several(self, names: list[str]) -> str:
        """A part for each that is ours."""
        if len(names) > resource_metrics.MOST_NODES:
            raise web.HTTPBadRequest(text=f"node: {len(names)} of them are asked for, at most {resource_metrics.MOST_NODES} may be")
        self._usages.keep([place.nodes() for place in self._places])
        parts: list[str] = []
        for name in dict.fromkeys(names):
            if (place := self._place_of(name)) is not None:
                parts.append(resource_metrics.part(self._usages.measure(name, place.pods_on(name))))
                await asyncio.sleep(0)  # the nodes have more to do than to tell of themselves
        return "".join(parts)

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=summary.encoded(self._measured(request)), content_type="application/json")

    def _node(self, request: web.Request) -> str:
        """Which one is asked: where one process is several nodes, its name is in the query. Empty for several, or where nobody can
        tell."""
        if named := request.query.getall("node", []):
            return named[0] if len(named) == 1 else ""
        nodes = [place.nodes() for place in self._places]
        return next(iter(name for names in nodes for name in names)) if sum(map(len, nodes)) == 1 else ""

    def _place_of(self, node: str) -> Pods | None:
        return next((place for place in self._places if node in place.nodes()), None)

    def _measured(self, request: web.Request) -> NodeUsage:
        node = self._node(request)
        if not node:
            raise web.HTTPBadRequest(text="several nodes answer here, or none does; name one of them: ?node=NAME")
        place = self._place_of(node)
        if place is None:
            raise web.HTTPNotFound(text=f"node {node[:253]!r} is none of this process")
        self._usages.keep([one.nodes() for one in self._places])
        return self._usages.measure(node, place.pods_on(node))

    async def _healthy(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _refuse_exec(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPBadRequest(text=_why_not("exec", *self._running(request)))

    async def _refuse_port_forward(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPBadRequest(text=_why_not("portforward", *self._running(request)))

    async def _log(self, request: web.Request) -> web.StreamResponse:
        pod, work = self._found(request)
        try:
            options = log_options(request.query)
        except Unanswerable as sentence:
            raise web.HTTPBadRequest(text=str(sentence)) from None
        if not isinstance(work, HasLog):
            raise web.HTTPBadRequest(text=_why_not("log", pod, work))
        if work.status(pod.uid) is None:
            raise web.HTTPBadRequest(text=_not_started(pod, request))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        async for piece in read_log(lambda follow: work.log(pod.uid, follow=follow), options):
            await response.write(piece)
        return response

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        pod, work = self._found(request)
        answer = web.WebSocketResponse(protocols=PROTOCOLS, heartbeat=HEARTBEAT, autoping=True)
        if not answer.can_prepare(request).ok:
            raise web.HTTPBadRequest(text=f"a console is only given over a WebSocket that speaks one of {', '.join(PROTOCOLS)}")
        await answer.prepare(request)
        # Told inside of it: whoever asked sees the sentence, and not only that they were refused.
        if not isinstance(work, HasConsole):
            await tell(answer, failure(_why_not("attach", pod, work)))
        elif work.status(pod.uid) is None:
            await tell(answer, failure(_not_started(pod, request)))
        else:
            await join(answer, await work.console(pod.uid), typing=bool(request.query.get("input") or request.query.get("stdin")))
        return answer

    def _find(self, request: web.Request) -> tuple[Pod, Work | None] | None:
        namespace, name = (request.match_info.get(part, "") for part in ("namespace", "pod"))
        return next((one for place in self._places if (one := place.find(namespace, name)) is not None), None)

    def _running(self, request: web.Request) -> tuple[Pod, Work | None]:
        found = self._find(request)
        if found is None:
            namespace, name = (request.match_info[part] for part in ("namespace", "pod"))
            raise web.HTTPNotFound(text=f"no node of this process runs a pod {namespace}/{name}")
        return found

    def _found(self, request: web.Request) -> tuple[Pod, Work | None]:
        namespace, name, container = (request.match_info[part] for part in ("namespace", "pod", "container"))
        found = self._running(request)
        if all(one.name != container for one in found[0].spec.containers or ()):
            raise web.HTTPNotFound(text=f"pod {namespace}/{name} has no container {container}")
        return found


def _verb(request: web.Request) -> str:
    """A console over a WebSocket is a GET; who types changes something all the same."""
    return "get" if request.method == "GET" and not request.path.startswith(_STREAMED) else "create"


def _why_not(wanted: Wanted, pod: Pod, work: Work | None) -> str:
    if work is None:
        return f"pod {pod.namespace}/{pod.name} does not run: its node runs virtual machines, and no containers"
    return why_not(wanted, pod.namespace, pod.name, pod.annotations)


def _not_started(pod: Pod, request: web.Request) -> str:
    return f'container "{request.match_info["container"]}" in pod "{pod.name}" is waiting to start'
