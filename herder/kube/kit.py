"""What a controller is given, and how a set of them is run for one term."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.cache import Cache, Caches
from herder.kube.client import Client
from herder.kube.controller import LIMIT, Controller, Work
from herder.kube.events import Recorder
from herder.kube.failures import Failures
from herder.kube.queue import Queue


class Kit(msgspec.Struct, frozen=True):
    client: Client
    caches: Caches
    recorder: Recorder
    world: World
    registry: CollectorRegistry
    # What is called at the end of the term, whether the work had begun or not.
    _at_end: list[Callable[[], None]] = msgspec.field(default_factory=list[Callable[[], None]])

    def queue(self, name: str) -> Queue:
        queue = Queue(self.world, name, registry=self.registry)
        self.at_end(queue.stop_measuring)
        return queue

    def at_end(self, callback: Callable[[], None]) -> None:
        """For numbers that only who leads may show: the process lives on, and others lead."""
        self._at_end.append(callback)

    def end(self) -> None:
        for callback in self._at_end:
            callback()
        self._at_end.clear()
        self.caches.stop_measuring()

    def work(
        self, controller: Controller, queue: Queue, workers: int = 1, limit: float = LIMIT, *, of: Cache[Any] | None = None
    ) -> Work:
        """`of`: the objects that the names in the queue are names of. What fails again and again is shown on them."""
        shows = Failures(controller.name, self.client, self.recorder, self.world, of) if of is not None else None
        return Work(controller, queue, workers, world=self.world, registry=self.registry, limit=limit, failures=shows)


class Runs(Protocol):
    async def run(self) -> None: ...


class Together:
    """Several that make up one controller: they share what was made with them."""

    def __init__(self, *parts: Runs) -> None:
        self._parts = parts

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run())


# Makes the controller, its queue and its subscriptions; called anew for each term, so that nothing is remembered from the last.
Start = Callable[[Kit], Runs]


async def run_controllers(kit: Kit, starts: Sequence[Start], synced: Callable[[], None] = lambda: None) -> None:
    """For one term, until cancelled. Nobody works before all caches know everything: what is not there yet looks like what is
    not there any more."""
    try:
        works = [start(kit) for start in starts]
        async with asyncio.TaskGroup() as group:
            group.create_task(kit.caches.run())
            await kit.caches.wait_synced()
            synced()
            for work in works:
                group.create_task(work.run())
            await asyncio.get_running_loop().create_future()
    finally:
        kit.end()
