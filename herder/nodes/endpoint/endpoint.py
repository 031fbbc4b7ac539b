"""The HTTPS endpoint of all nodes of a process. It is for the API server, which has asked who may look."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable
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
from herder.nodes.endpoint.callers import Callers, caller_of
from herder.nodes.endpoint.channels import PROTOCOLS, failure, join, tell
from herder.nodes.endpoint.logs import read_log
from herder.nodes.endpoint.options import Unanswerable, log_options
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
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pods(Protocol):
    def find(self, namespace: str, name: str) -> tuple[Pod, Work | None] | None:
        """A pod of ours, and what runs it; nothing does where a node has no such work."""
        ...


def server_tls(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """Whoever shows no certificate of the cluster's authority is not even asked what they want."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Endpoint:
    def __init__(self, tls: ssl.SSLContext, callers: Callers, world: World, limits: Limits | None = None) -> None:
        self._callers = callers
        self._world = world
        self._listener = Listener(limits or limits_of(min(MOST_CONNECTIONS, file_limit() // 4)), tls)
        self._sent_away = Occasional(log)
        self._places: list[Pods] = []
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
        caller = caller_of(certificate)
        if not certificate or ssl.cert_time_to_seconds(certificate["notAfter"]) < self._world.now():
            raise web.HTTPForbidden(text=f"the certificate of {caller.name!r} is no longer good")
        found = self._find(request)
        node = (found[0].spec.node_name or "") if found is not None else ""
        try:
            refusal = await self._callers.refusal(caller, _verb(request), node)
        except KubeError as error:
            raise web.HTTPServiceUnavailable(text=f"nobody can say whether {caller.name!r} may look: {error}") from None
        if refusal:
            self._sent_away("somebody who may not look was sent away", name=caller.name, path=request.path)
            raise web.HTTPForbidden(text=refusal)
        if problem := self._listener.recognise(request.transport, caller.name, privileged=True):
            raise web.HTTPTooManyRequests(text=problem)
        try:
            return await handler(request)
        except ConnectionError:
            return web.Response(status=500)  # whoever asked has left, and hears nothing of this

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
