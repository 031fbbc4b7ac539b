"""What a process says about itself over HTTP: /healthz, /readyz and /metrics, for probes and for Prometheus."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from herder.net.bad_requests import server_log
from herder.net.crowd import limits_of
from herder.net.listener import Listener

Check = Callable[[], str]
# Nobody says who they are here, and nobody needs to stay: whoever asks now goes before who asked long ago.
MOST_CONNECTIONS = 128
HEAD_PATIENCE = 90.0


@asynccontextmanager
async def serve_health(listener: socket.socket, registry: CollectorRegistry, healthy: Check, ready: Check) -> AsyncGenerator[None]:
    """The checks return what is wrong, or nothing."""
    connections = Listener(limits_of(MOST_CONNECTIONS, strangers=MOST_CONNECTIONS))
    application = web.Application(middlewares=[connections.middleware])
    application.router.add_get("/healthz", _answers(healthy))
    application.router.add_get("/readyz", _answers(ready))

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application, access_log=None, logger=server_log(), shutdown_timeout=1.0, keepalive_timeout=HEAD_PATIENCE)
    await runner.setup()
    assert runner.server is not None
    connections.start(listener, runner.server)
    try:
        yield
    finally:
        connections.close()
        await asyncio.shield(runner.cleanup())


def _answers(check: Check) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        wrong = check()
        return web.Response(text=f"{wrong}\n" if wrong else "ok\n", status=503 if wrong else 200)

    return answer
