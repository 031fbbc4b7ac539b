"""The controllers' own process: stands by until it leads, then runs all of them, against any engine."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
from collections.abc import Callable, Sequence

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld, World
from herder.app import garbage
from herder.app.health import serve_health
from herder.app.permission import check_allowed
from herder.app.stopping import Stop
from herder.controllers.admission import AdviceAmongPools, AmongOthers
from herder.controllers.evictions import EvictionOfGuests
from herder.controllers.job_admission import JobAdmission
from herder.kit.process_metrics import measure_process
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.fenced import FencedTransport
from herder.kube.kit import Kit, Start, run_controllers
from herder.kube.leases import LeaderElection
from herder.kube.leases import Settings as LeaseSettings
from herder.kube.transport import Transport
from herder.kube.webhook import Registration, Webhook
from herder.kube.webhook import Settings as WebhookSettings
from herder.net.files import raise_file_limit

log = structlog.get_logger()
NAME = "herder-controllers"
COMPONENT = "herder.dev/controllers"
# The work did not end when its time was over: only ending the process is sure to end it.
STUCK = 71
# How long an end waits for what was told last.
LAST_EVENTS = 1.0


class Settings(msgspec.Struct, frozen=True):
    lease: LeaseSettings
    # Empty for one that nobody else has. One of a supervisor, which never runs two at once, keeps its own and need not wait
    # for the lease of the one that died.
    identity: str = ""
    ready_fd: int | None = None
    # None where the engine asks our rules itself, or nobody shall ask them.
    webhook: WebhookSettings | None = None


async def run(transport: Transport, settings: Settings, controllers: Sequence[Start], listener: socket.socket | None = None) -> int:
    raise_file_limit()
    stop = Stop(supervised=settings.ready_fd is not None)
    stop.listen()
    async with Client(transport, NAME) as client:
        # A task of its own: told to stop, it stops even while it waits for a server that never comes.
        process = Process(client, settings, controllers, collector=Collector())
        working = asyncio.create_task(process.run(listener))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        await asyncio.wait([working])
        if not working.cancelled():
            working.result()
    return 0


class Collector:
    """Python's garbage collector need not look again and again at what the caches hold: it stays until it is replaced."""

    def spare(self) -> None:
        """Once the caches know everything."""
        garbage.look_seldom()

    def look_at_everything(self) -> None:
        """At the end of a term, whose caches are garbage."""
        gc.unfreeze()


class Process:
    def __init__(
        self,
        client: Client,
        settings: Settings,
        controllers: Sequence[Start],
        world: World | None = None,
        stuck: Callable[[], None] = lambda: os._exit(STUCK),
        collector: Collector | None = None,
    ) -> None:
        """`collector`: where the garbage collector is ours alone."""
        self._client = client
        self._settings = settings
        self._controllers = controllers
        self._world = world or RealWorld()
        self._collector = collector
        self._registry = CollectorRegistry()
        measure_process(self._registry)
        identity = settings.identity or f"{socket.gethostname()}_{self._world.uid()}"
        self._election = LeaderElection(client, self._world, identity, settings.lease, registry=self._registry, stuck=stuck)
        # Not of a term: every replica answers. And not measured: a leader has caches of its own, by the same names.
        self._webhook_caches = Caches(client, self._world)
        rules = (AmongOthers(client), JobAdmission(client, self._webhook_caches))
        asked = (rules, EvictionOfGuests(client), (AdviceAmongPools(self._webhook_caches),))
        self._webhook = Webhook(client, self._world, settings.webhook, self._registry, *asked) if settings.webhook else None
        self._recorder = Recorder(client, self._world, COMPONENT, instance=identity, registry=self._registry)

    async def run(self, listener: socket.socket | None) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if listener is not None:
                await stack.enter_async_context(serve_health(listener, self._registry, self._healthy, self._ready))
            if self._settings.ready_fd is not None:
                # Started together with the server: that it does not answer yet is no news.
                await self._client.wait_until_ready()
            await check_allowed(self._client, self._settings.lease.lease)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            helpers = [group.create_task(self._recorder.run()), group.create_task(self._say_ready())]
            if self._webhook is not None:
                # Every replica answers, whoever leads: an API server asks whichever it reaches.
                helpers.append(group.create_task(self._webhook_caches.run()))
                helpers.append(group.create_task(self._webhook.run()))
            try:
                await self._election.run(self._lead)
            finally:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_EVENTS):
                        await self._recorder.wait_written(hurry=True)
                for helper in helpers:
                    helper.cancel()

    async def _lead(self) -> None:
        """Everything is new for each term: a leader trusts nothing that it knew before."""
        client = Client(FencedTransport(self._client.transport, self._election.leads), NAME)
        caches = Caches(client, self._world, self._registry)
        kit = Kit(client, caches, self._recorder, self._world, self._registry)
        async with contextlib.AsyncExitStack() as stack:
            if self._collector is not None:
                stack.callback(self._collector.look_at_everything)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            synced = self._collector.spare if self._collector is not None else lambda: None
            group.create_task(run_controllers(kit, self._controllers, synced))
            if self._webhook is not None and self._settings.webhook is not None:
                await self._webhook.ready.wait()
                group.create_task(Registration(client, self._world, self._settings.webhook).keep())

    async def _say_ready(self) -> None:
        await self._election.heard.wait()
        if self._settings.ready_fd is not None:
            os.write(self._settings.ready_fd, b"r")
            os.close(self._settings.ready_fd)

    def _ready(self) -> str:
        """Standing by is being ready too."""
        return "" if self._election.heard.is_set() else "the API server has not answered yet"

    def _healthy(self) -> str:
        """That we answer says that the event loop turns; a term that ought to be over by now would be a bug."""
        return "it works although the lease has run out" if self._election.overdue() else ""
