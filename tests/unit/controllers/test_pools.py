"""The controller of pools while what it knows of machines is late: what it deletes, and which names are free, it asks for first."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

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


class LateMachines:
    """A transport over which changes of machines come only while `open` is set, and others may act between two calls."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.close = line.close
        # How often a pool's status was written.
        self.statuses = 0
        # Done once, when the next machine is about to be written.
        self.before_write: Callable[[], Awaitable[Any]] | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, call: Call) -> Reply:
        if call.method == "PATCH" and "/virtualmachines/" in call.path and self.before_write is not None:
            meanwhile, self.before_write = self.before_write, None
            await meanwhile()
        self.statuses += call.method == "PATCH" and call.path.endswith("/virtualmachinepools/web/status")
        return await self._line.send(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        stream = self._line.stream(call)
        return self._late(stream) if call.path.endswith("/virtualmachines") else stream

    @asynccontextmanager
    async def _late(self, stream: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with stream as pieces:
            yield self._held(pieces)

    async def _held(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            await self.open.wait()
            yield piece


class Cluster:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.person: Client = place.client()
        self.late = LateMachines(place.line())
        self._world = world

    def leads(self) -> AbstractAsyncContextManager[None]:
        return term(Client(self.late, "test"), self._world, Pools.start)

    async def make(self, replicas: int, **spec: Any) -> None:
        body = {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": replicas, "template": {"spec": MACHINE_SPEC}, **spec},
        }
        await self.person.create(POOLS, body)
        await asyncio.sleep(5)

    async def scale(self, replicas: int) -> None:
        await self.person.patch(POOLS, Key("default", "web"), {"spec": {"replicas": replicas}})
        await asyncio.sleep(5)

    async def staying(self) -> list[str]:
        listed = (await self.person.list(MACHINES, Selection(namespace="default"))).items
        return sorted(one.name for one in listed if not one.being_deleted)


def play(story: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL, DATA_VOLUME)) as place:
            cluster = Cluster(place, world)
            async with cluster.leads():
                await story(cluster)
                cluster.late.open.set()

    in_virtual_time(main())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_label_then_scale_with_the_machines_cache_behind_that_of_pools(number: int) -> None:
    async def story(cluster: Cluster) -> None:
        marked = {"orderedPolicies": [{"labelSelector": {"matchLabels": {"drop": "yes"}}}]}
        await cluster.make(3, scaleInStrategy={"proactive": {"selectionPolicy": marked}})
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]
        cluster.late.open.clear()
        await cluster.person.patch(MACHINES, Key("default", f"web-{number}"), {"metadata": {"labels": {"drop": "yes"}}})
        await cluster.scale(2)
        assert await cluster.staying() == [f"web-{one}" for one in (1, 2, 3) if one != number]

    play(story)


def test_a_machine_that_a_person_has_just_made_is_not_taken_over() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        cluster.late.open.clear()
        await cluster.person.create(MACHINES, {"metadata": {"name": "web-2", "namespace": "default"}, "spec": MACHINE_SPEC})
        await cluster.scale(2)
        theirs = await cluster.person.get(MACHINES, Key("default", "web-2"))
        assert (theirs.metadata.owner_references, theirs.labels) == (None, {})
        cluster.late.open.set()
        await asyncio.sleep(5)
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]
        # Its number is free again once it is gone.
        await cluster.person.delete(MACHINES, Key("default", "web-2"))
        await asyncio.sleep(5)
        assert await cluster.staying() == ["web-1", "web-3"]
        await cluster.scale(3)
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]

    play(story)


@pytest.mark.parametrize("spec", [MACHINE_SPEC, {**MACHINE_SPEC, "running": True}], ids=["like ours", "another"])
def test_a_machine_that_a_person_makes_between_our_look_and_our_write_stays_theirs(spec: Json) -> None:
    """Also where it says nothing else than ours: then no two managers disagree about a field."""

    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        body = {"metadata": {"name": "web-2", "namespace": "default"}, "spec": spec}
        cluster.late.before_write = lambda: cluster.person.create(MACHINES, body)
        await cluster.scale(2)
        assert cluster.late.before_write is None
        theirs = await cluster.person.get(MACHINES, Key("default", "web-2"))
        assert (theirs.metadata.owner_references, theirs.labels, theirs.spec.running) == (None, {}, spec["running"])
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]

    play(story)


def test_counts_are_written_at_most_once_a_second() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        before = cluster.late.statuses
        for replicas in range(2, 22):
            await cluster.person.patch(POOLS, Key("default", "web"), {"spec": {"replicas": replicas}})
            await asyncio.sleep(0.2)
        await asyncio.sleep(2)
        status = (await cluster.person.get(POOLS, Key("default", "web"))).status
        assert status is not None and status.replicas == 21
        assert 2 <= cluster.late.statuses - before <= 6

    play(story)


def test_a_machine_that_was_detached_a_moment_ago_is_not_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(2, scaleInStrategy={"proactive": {"selectionPolicy": {"basePolicy": "Newest"}}})
        cluster.late.open.clear()
        await cluster.person.patch(MACHINES, Key("default", "web-2"), {"metadata": {"ownerReferences": None}})
        await cluster.scale(0)
        assert await cluster.staying() == ["web-2"]

    play(story)
