"""The arbitrator alone on caches of an embedded engine, in virtual time: what it lets begin runs until a test says it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api.account import SYSTEM_NAMESPACE
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import PodMigrationJobStatus
from herder.api.registry import INSTANCE, JOB, MACHINE, POOL
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.arbitrator import Arbitrator
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Caches, Stored
from herder.kube.client import Client
from herder.kube.discovery import Discovery
from herder.kube.errors import Unreachable
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Runs, Together, run_controllers
from herder.kube.resources import BUDGETS, CONFIG_MAPS, JOBS, PODS, REPLICA_SETS, Key
from herder.kube.transport import Call, Reply
from herder.rules.jobs.arbitration import Refused, Wait
from tests.unit.controllers.finders import MOMENT, Finders
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
# Longer than the engine takes to look at a budget.
BUDGETS_KNOWN = 5.0
SETTINGS = Key(SYSTEM_NAMESPACE, "herder-config")


class StatusLine:
    """A transport on which writes of jobs' statuses can be lost, or come too late."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.close = line.close
        # Done by the server, and not answered; or not even done.
        self.lost: set[str] = set()
        self.failing: set[str] = set()
        # Done once, when the status of this job is about to be written.
        self.before: dict[str, Callable[[], Awaitable[Any]]] = {}
        # While it is not set, changes of jobs do not come to the cache.
        self.open = asyncio.Event()
        self.open.set()
        # The jobs whose status was written, as often as it was.
        self.written: list[str] = []

    async def send(self, call: Call) -> Reply:
        job = call.path.split("/")[-2] if call.path.endswith("/status") and "/podmigrationjobs/" in call.path else ""
        if not job or call.method == "GET":
            return await self._line.send(call)
        meanwhile = self.before.pop(job, None)
        if meanwhile is not None:
            await meanwhile()
        self.written.append(job)
        if job in self.failing:
            raise Unreachable("nobody is there")
        reply = await self._line.send(call)
        if job in self.lost:
            raise Unreachable("the answer broke off")
        return reply

    async def keep_from_the_cache(self) -> None:
        self.open.clear()

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        stream = self._line.stream(call)
        return self._late(stream) if call.path.endswith("/podmigrationjobs") else stream

    @asynccontextmanager
    async def _late(self, stream: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with stream as pieces:
            yield self._held(pieces)

    async def _held(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            await self.open.wait()
            yield piece


class Stage(Finders):
    arbitrator: Arbitrator

    def __init__(self, place: Place, world: VirtualWorld) -> None:
        super().__init__(place, world)
        self._place, self.world = place, world
        self.statuses = StatusLine(self.line)
        self.registry = CollectorRegistry()

    @asynccontextmanager
    async def leads(self) -> AsyncGenerator[None]:
        """For one term. Its own line: another leader's cannot be cut by what happens on this one."""
        client = Client(self.statuses, "herder")
        recorder = Recorder(client, self.world, "test", registry=CollectorRegistry())
        kit = Kit(client, Caches(client, self.world, CollectorRegistry()), recorder, self.world, self.registry)
        synced = asyncio.Event()
        tasks = [
            asyncio.create_task(run_controllers(kit, (self._start,), synced.set)),
            asyncio.create_task(recorder.run()),
        ]
        await synced.wait()
        await asyncio.sleep(MOMENT)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _start(self, kit: Kit) -> Runs:
        discovery, config = Discovery(kit.client), HerderConfig(kit.caches)
        self.workloads = Workloads(kit, discovery)
        self.budgets = Budgets(kit, discovery, self.workloads)
        guard = WebhookGuard(kit, discovery)
        self.arbitrator = Arbitrator(kit, self.workloads, self.budgets, config, guard)
        self._jobs, self._pods = kit.caches.of(JOBS), kit.caches.of(PODS)
        return Together(self.arbitrator.work, self.workloads.scales.work, self.budgets, guard)

    # --- what there is -----------------------------------------------------------------------------------------------------------

    async def settings(self, text: str) -> None:
        await self.person.apply(CONFIG_MAPS, SETTINGS, {"data": {"jobs.yaml": text}})
        await asyncio.sleep(MOMENT)

    async def web(self, pods: int, name: str = "web", labels: Json | None = None, owner: Json | None = None) -> Json:
        """A ReplicaSet with so many ready pods, each called after it and a number."""
        labels = labels or {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
        made = await self.make(REPLICA_SETS, name, spec, owner)
        await self.status(REPLICA_SETS, name, {"replicas": pods, "observedGeneration": 1})
        for number in range(pods):
            await self.make_pod(f"{name}-{number}", made, labels=labels)
        await asyncio.sleep(MOMENT)
        return made

    async def budget(self, allowed: int, name: str = "web") -> None:
        """Of three pods `web`, by a budget that the engine keeps up to date."""
        await self.make(BUDGETS, name, {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 3 - allowed})
        await asyncio.sleep(BUDGETS_KNOWN)

    async def allow(self, allowed: int, name: str = "web") -> None:
        await self.person.patch(BUDGETS, Key("default", name), {"spec": {"minAvailable": 3 - allowed}})
        await asyncio.sleep(BUDGETS_KNOWN)

    async def file(self, *pods: str, **spec: Any) -> None:
        """Jobs, each called after its pod."""
        for pod in pods:
            reference = {"namespace": "default", "name": pod}
            await self.person.create(JOBS, {"metadata": {"name": pod}, "spec": {"podRef": reference, **spec}})
        await asyncio.sleep(MOMENT)

    async def over(self, name: str, phase: str = "Succeed") -> None:
        await self.set_status(name, phase=phase)

    async def set_status(self, name: str, **status: Any) -> None:
        await self.person.patch(JOBS, Key("", name), {"status": status}, subresource="status")
        await asyncio.sleep(MOMENT)

    # --- what became of it -------------------------------------------------------------------------------------------------------

    async def job(self, name: str) -> PodMigrationJobStatus:
        status = (await self.person.get(JOBS, Key("", name))).status
        assert status is not None, f"job {name} has no status"
        return status

    async def reason(self, name: str) -> str:
        """Why it waits or has failed, or its phase."""
        status = await self.job(name)
        return status.reason or str(status.phase)

    async def begun(self) -> list[str]:
        return sorted(one.name for one in (await self.person.list(JOBS)).items if one.status and one.status.phase == "Running")

    def stored(self, name: str) -> Stored[PodMigrationJob]:
        stored = self._jobs.stored(Key("", name))
        assert stored is not None
        return stored

    async def look_again(self, name: str) -> Wait | Refused | None:
        return await self.arbitrator.look_again(self.stored(name))


def on_stage(story: Callable[[Stage], Coroutine[Any, Any, None]], *, leading: bool = True) -> None:
    """`leading`: the arbitrator runs all the time. Else the story says when."""

    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL, JOB)) as place:
            stage = Stage(place, world)
            async with stage.leads() if leading else nullcontext():
                await story(stage)

    in_virtual_time(main())
