"""Replicas of the webhook in the test's own process, and a clock that the test moves."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from herder.api import registry
from herder.api.world import RealWorld
from herder.kube.client import Client
from herder.kube.webhook import Registration, Settings, Webhook
from herder.kube.webhook.rules import Evictions
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api, Json, Reply
from tests.engines.processes import free_ports
from tests.engines.waiting import eventually

MACHINES = resource_of(registry.MACHINE)
FINE: Json = {"running": False, "template": {"spec": {"domain": {}}}}
BROKEN: Json = {
    "running": False,
    "template": {"spec": {"domain": {"memory": {"guest": "2Gi"}, "resources": {"limits": {"memory": "1Gi"}}}}},
}


class MovedWorld(RealWorld):
    """Our clock. That of the API server goes on as it does: what is valid to us must be valid to it, too."""

    def __init__(self, behind: float) -> None:
        self.behind = behind

    def now(self) -> float:
        return time.time() - self.behind


def some_settings(**more: float) -> Settings:
    (port,) = free_ports(1)
    return Settings(host="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}", **more)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def running(
    client: Client, world: RealWorld, settings: Settings, evictions: Evictions | None = None
) -> AsyncGenerator[Webhook]:
    webhook = Webhook(client, world, settings, CollectorRegistry(), evictions=evictions)
    task = asyncio.create_task(webhook.run())
    ready = asyncio.create_task(webhook.ready.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    try:
        if task.done():
            task.result()
        yield webhook
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def registered(client: Client, world: RealWorld, settings: Settings, api: Api) -> AsyncGenerator[Registration]:
    registration = Registration(client, world, settings)
    await registration.register()
    try:
        await eventually(lambda: is_judged(api))
        yield registration
    finally:
        await registration.remove()
        await eventually(lambda: is_left_alone(api))


async def write(api: Api, spec: Json, name: str = "a", **params: str) -> Reply:
    return await api.create(MACHINES, {"metadata": {"name": name}, "spec": spec}, "default", **params)


async def is_judged(api: Api) -> bool:
    return (await write(api, BROKEN, dryRun="All")).code == 422


async def is_left_alone(api: Api) -> bool:
    return (await write(api, BROKEN, dryRun="All")).code == 201
