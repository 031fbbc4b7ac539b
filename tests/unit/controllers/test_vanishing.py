"""Whatever a controller is about to write to may be gone by then: that is no fault of anybody, and nothing to be alarmed about."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from herder.api.registry import KINDS
from herder.controllers import CONTROLLERS, EMBEDDED_ONLY
from herder.controllers.node_lifecycle import NODE_LIFECYCLE
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit, run_controllers
from herder.kube.resources import DEPLOYMENTS, INSTANCES, MACHINES, MIGRATIONS, Key
from herder.kube.transport import Call, Reply
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from herder.scheduler import EMBEDDED_NAMES, scheduler
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

# Nodes and their leases stay: what becomes of those that go is another story.
STAYS = ("/nodes/", "/leases/", "/events/")
UNHELD = b'{"metadata":{"finalizers":null}}'
NOW = b'{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}'


class Vanishing:
    """A way to the API on which every object is taken away just before it is patched for the n-th time."""

    def __init__(self, line: Line, time: int) -> None:
        self._line = line
        self._time = time
        self._patched: Counter[str] = Counter()
        self.taken: list[str] = []

    async def send(self, call: Call) -> Reply:
        if call.method == "PATCH" and not any(part in call.path for part in STAYS):
            path = call.path.removesuffix("/status")
            self._patched[path] += 1
            if self._patched[path] == self._time:
                await self._line.send(Call("PATCH", path, body=UNHELD, content_type="application/merge-patch+json"))
                await self._line.send(Call("DELETE", path, body=NOW))
                self.taken.append(path)
        return await self._line.send(call)

    def stream(self, call: Call) -> Any:
        return self._line.stream(call)

    async def close(self) -> None:
        await self._line.close()


@asynccontextmanager
async def herd(place: Place, world: VirtualWorld, line: Vanishing) -> AsyncGenerator[Client]:
    """Everything that `herder up` runs, in one process."""
    client, registry = Client(line, "herder"), CollectorRegistry()
    recorder = Recorder(client, world, "herder.dev/controllers", registry=registry)
    kit = Kit(client, Caches(client, world, registry), recorder, world, registry)
    starts = (*CONTROLLERS, *EMBEDDED_ONLY, *NODE_LIFECYCLE, scheduler(EMBEDDED_NAMES))
    nodes = tuple(NodeSettings(name=name) for name in ("node-1", "node-2"))
    tasks = [
        asyncio.create_task(recorder.run()),
        asyncio.create_task(run_controllers(kit, starts)),
        asyncio.create_task(Fleet(client, world, nodes, registry).run()),
    ]
    try:
        yield place.client()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def live(client: Client) -> None:
    """Machines and workloads come, change, move and go."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    pvc = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    disk = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": pvc}}
    domain = {"domain": {"memory": {"guest": "64Mi"}}}
    volumes = {"volumes": [{"name": "disk", "dataVolume": {"name": "disk"}}]}
    with_disk = {"runStrategy": "Always", "dataVolumeTemplates": [disk], "template": {"spec": {**domain, **volumes}}}
    without = {"runStrategy": "Always", "template": {"spec": domain}}
    for round_ in range(4):
        for name in ("web", "api"):
            await client.create(DEPLOYMENTS, {"metadata": {"name": f"{name}-{round_}", "namespace": "default"}, "spec": spec})
        named = {"metadata": {"name": f"vm-{round_}", "namespace": "default"}}
        await client.create(MACHINES, {**named, "spec": with_disk if round_ == 0 else without})
        await asyncio.sleep(20)
        if await client.find(INSTANCES, Key("default", f"vm-{round_}")) is not None:
            await client.create(MIGRATIONS, {**named, "spec": {"vmiName": f"vm-{round_}"}})
        await asyncio.sleep(20)


@pytest.mark.slow
@pytest.mark.parametrize("time", [1, 2, 3])
def test_what_goes_while_it_is_written_to_is_nothing_to_be_alarmed_about(time: int) -> None:
    async def scenario() -> list[str]:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, KINDS) as place:
            line = Vanishing(place.line(), time)
            async with herd(place, world, line) as client:
                await live(client)
            return line.taken

    with capture_logs() as logs:
        taken = in_virtual_time(scenario())
    assert {path.split("/")[-2] for path in taken} >= {"deployments", "virtualmachines", "virtualmachineinstances"}
    alarming = [line for line in logs if line["log_level"] in ("error", "critical") or line.get("exc_info")]
    assert alarming == []
