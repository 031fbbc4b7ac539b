"""Controllers for one term, against an engine in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Start, run_controllers


@asynccontextmanager
async def term(client: Client, world: World, start: Start, registry: CollectorRegistry | None = None) -> AsyncGenerator[None]:
    """From when it has seen all that there is."""
    recorder = Recorder(client, world, "test", registry=CollectorRegistry())
    kit = Kit(client, Caches(client, world, CollectorRegistry()), recorder, world, registry or CollectorRegistry())
    synced = asyncio.Event()
    task = asyncio.create_task(run_controllers(kit, (start,), synced.set))
    await synced.wait()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
