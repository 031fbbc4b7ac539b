"""A scheduler at work on an engine in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api.core import Pod
from herder.api.registry import INSTANCE, JOB, RESERVATION
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Start, run_controllers
from herder.kube.resources import NODES, PODS, Anything, Key
from herder.scheduler import NAMES
from herder.scheduler.scheduler import Scheduler
from tests.unit.kube.engine import Line, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples
from tests.unit.rules.placement.cluster import node, pod

OURS = "herder-scheduler"


class Town:
    """What a test does and sees; `line` is the scheduler's own way to the API."""

    def __init__(self, client: Client, line: Line, world: VirtualWorld, starts: Sequence[Start], names: tuple[str, ...]) -> None:
        self.client = client
        self.line = line
        self.world = world
        self.registry = CollectorRegistry()
        self._starts = starts
        self._names = names
        self._tasks: list[asyncio.Task[None]] = []
        # The one that works now.
        self.scheduler: Scheduler | None = None

    def begin(self) -> None:
        """A new term: whoever begins knows nothing but what is written."""
        client = Client(self.line, "scheduler")
        self.registry = CollectorRegistry()
        recorder = Recorder(client, self.world, "herder.dev/controllers", registry=self.registry)
        kit = Kit(client, Caches(client, self.world, self.registry), recorder, self.world, self.registry)
        starts = (self._scheduler, *self._starts)
        self._tasks = [asyncio.create_task(run_controllers(kit, starts)), asyncio.create_task(recorder.run())]

    def _scheduler(self, kit: Kit) -> Scheduler:
        self.scheduler = Scheduler(kit, self._names)
        return self.scheduler

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def nodes(self, *names: str, **more: Any) -> None:
        for name in names:
            await self.client.create(NODES, node(name, **more))
            await self.client.patch(NODES, Key("", name), {"spec": {"taints": list(more.get("taints", ()))}})

    async def pod(self, name: str, **more: Any) -> None:
        document = pod(name, schedulerName=more.pop("scheduler", OURS), **more)
        del document["metadata"]["uid"]
        await self.client.create(PODS, document)

    async def get(self, name: str) -> Pod:
        return await self.client.get(PODS, Key("default", name))

    async def node_of(self, name: str) -> str:
        return (await self.get(name)).spec.node_name

    async def node_of_any(self, name: str) -> str:
        """Also of one that may be gone by now."""
        found = await self.client.find(PODS, Key("default", name))
        return found.spec.node_name if found is not None else ""

    async def condition(self, name: str) -> str:
        found = [one for one in (await self.get(name)).status.conditions if one.type == "PodScheduled"]
        return found[0].message if found else ""

    async def delete(self, resource: Anything, name: str, namespace: str = "") -> None:
        await self.client.delete(resource, Key(namespace, name), grace_period_seconds=0)

    async def remove(self, name: str) -> None:
        await self.delete(PODS, name, "default")

    def attempts(self) -> dict[str, int]:
        return {key[0]: int(value) for key, value in samples(self.registry, "herder_schedule_attempts_total").items()}


async def rest(seconds: float = 30.0) -> None:
    """Time in which all that can happen happens."""
    await asyncio.sleep(seconds)


def play(scenario: Callable[[Town], Awaitable[None]], names: tuple[str, ...] = NAMES, starts: Sequence[Start] = ()) -> None:
    """`starts`: controllers that work beside the scheduler."""

    async def main() -> None:
        async with _town(names, starts) as town:
            await scenario(town)

    in_virtual_time(main())


@asynccontextmanager
async def _town(names: tuple[str, ...], starts: Sequence[Start]) -> AsyncGenerator[Town]:
    world = VirtualWorld()
    async with engine_in_virtual_time(world, (INSTANCE, RESERVATION, JOB)) as place:
        town = Town(place.client(), place.line(), world, starts, names)
        town.begin()
        try:
            yield town
        finally:
            await town.end()
