"""The controller of pools against an engine in virtual time, over a line on which changes of machines may be late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api.registry import DATA_VOLUME, INSTANCE, MACHINE, POOL
from herder.controllers.pool import Pools
from herder.kube.client import Client, Selection
from herder.kube.resources import MACHINES, POOLS, Key
from herder.kube.transport import Call, Reply
from tests.unit.controllers.term import term
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
INSTANCE_SPEC: Json = {"domain": {"memory": {"guest": "64Mi"}}}
# Kept off: nobody has to start them, and the pool is all that runs.
MACHINE_SPEC: Json = {"running": False, "template": {"spec": INSTANCE_SPEC}}


def pool(replicas: int, *, name: str = "web", **spec: Any) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "template": {"spec": MACHINE_SPEC}, **spec},
    }


class LateMachines:
    """A transport over which changes of machines and of instances come only while `open` and `instances` are set, and others may
    act between two calls."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.close = line.close
        # How often a pool's status was written.
        self.statuses = 0
        # Done once, when the next machine is about to be written, or deleted.
        self.before_write: Callable[[], Awaitable[Any]] | None = None
        self.before_delete: Callable[[], Awaitable[Any]] | None = None
        self.open, self.instances = asyncio.Event(), asyncio.Event()
        self.open.set()
        self.instances.set()

    async def send(self, call: Call) -> Reply:
        if call.method == "PATCH" and "/virtualmachines/" in call.path and self.before_write is not None:
            meanwhile, self.before_write = self.before_write, None
            await meanwhile()
        if call.method == "DELETE" and "/virtualmachines/" in call.path and self.before_delete is not None:
            meanwhile, self.before_delete = self.before_delete, None
            await meanwhile()
        self.statuses += call.method == "PATCH" and call.path.endswith("/virtualmachinepools/web/status")
        return await self._line.send(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        stream = self._line.stream(call)
        ends = {"/virtualmachines": self.open, "/virtualmachineinstances": self.instances}
        gate = next((gate for end, gate in ends.items() if call.path.endswith(end)), None)
        return self._late(stream, gate) if gate is not None else stream

    @asynccontextmanager
    async def _late(
        self, stream: AbstractAsyncContextManager[AsyncIterator[bytes]], gate: asyncio.Event
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with stream as pieces:
            yield self._held(pieces, gate)

    async def _held(self, pieces: AsyncIterator[bytes], gate: asyncio.Event) -> AsyncIterator[bytes]:
        async for piece in pieces:
            await gate.wait()
            yield piece


class Cluster:
    def __init__(self, place: Place, world: VirtualWorld, controller: type[Pools]) -> None:
        self.person: Client = place.client()
        self.late = LateMachines(place.line())
        self.registry = CollectorRegistry()
        self._controller = controller
        self._world = world

    def leads(self) -> AbstractAsyncContextManager[None]:
        return term(Client(self.late, "test"), self._world, self._controller.start, self.registry)

    async def make(self, replicas: int, **spec: Any) -> None:
        await self.person.create(POOLS, pool(replicas, **spec))
        await asyncio.sleep(5)

    async def scale(self, replicas: int) -> None:
        await self.person.patch(POOLS, Key("default", "web"), {"spec": {"replicas": replicas}})
        await asyncio.sleep(5)

    async def is_as_it_was(self, key: Key, uid: str) -> bool:
        """Nobody has deleted the machine."""
        found = await self.person.find(MACHINES, key)
        return found is not None and found.uid == uid and not found.being_deleted

    async def staying(self) -> list[str]:
        listed = (await self.person.list(MACHINES, Selection(namespace="default"))).items
        return sorted(one.name for one in listed if not one.being_deleted)


def play(story: Callable[[Cluster], Coroutine[Any, Any, None]], controller: type[Pools] = Pools, *, leads: bool = True) -> None:
    """`leads`: from the beginning, and until the story is over."""

    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL, DATA_VOLUME)) as place:
            cluster = Cluster(place, world, controller)
            async with cluster.leads() if leads else nullcontext():
                await story(cluster)
                cluster.late.open.set()
                cluster.late.instances.set()

    in_virtual_time(main())
