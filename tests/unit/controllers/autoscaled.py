"""An autoscaler on an embedded engine in virtual time, with pods that use as much as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.registry import POOL
from herder.api.world import timestamp
from herder.controllers.autoscaling import Autoscalers
from herder.controllers.workloads import ReplicaSets
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit, run_controllers
from herder.kube.resources import AUTOSCALERS, PODS, REPLICA_SETS, Anything, Key
from herder.rules.workloads.pods import is_active
from herder.server.resource_metrics.reading import ContainerName, NodeReading, Reading
from tests.unit.controllers.finders import CONTROLLERS
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
NODE = "n"
LABELS = {"app": "web"}
WEB = Key("default", "web")
SAMPLED_EVERY = 15.0
CPU_HALF: Json = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
AT_ONCE: Json = {"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"stabilizationWindowSeconds": 0}}


class Stage:
    """A ReplicaSet whose pods ask for one processor each and share a load; its controller and the autoscalers' run."""

    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.person: Client = place.client()
        self.line: Line = place.line(CONTROLLERS)
        self._world = world
        self._samples = place.samples
        # In processors, of all pods together.
        self.load = 0.0
        self._used: dict[str, float] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        client = Client(self.line, "test")
        recorder = Recorder(client, self._world, "test", registry=CollectorRegistry())
        kit = Kit(client, Caches(client, self._world, CollectorRegistry()), recorder, self._world, CollectorRegistry())
        tasks = [
            asyncio.create_task(run_controllers(kit, (ReplicaSets.start, Autoscalers.start))),
            asyncio.create_task(recorder.run()),
            asyncio.create_task(self._node()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def make(self, replicas: int, **spec: Any) -> None:
        """The set, and its autoscaler."""
        resources = {"requests": {"cpu": "1", "memory": "64Mi"}}
        pod = {"nodeName": NODE, "containers": [{"name": "main", "image": "x", "resources": resources}]}
        template = {"metadata": {"labels": LABELS}, "spec": pod}
        whole = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
        await self.create(REPLICA_SETS, "web", whole)
        await self.autoscale("web", **spec)

    async def autoscale(self, name: str, kind: str = "ReplicaSet", version: str = "apps/v1", **spec: Any) -> None:
        target = {"apiVersion": version, "kind": kind, "name": "web"}
        await self.create(AUTOSCALERS, name, {"scaleTargetRef": target, "maxReplicas": 10, "metrics": [CPU_HALF], **spec})

    async def create(self, resource: Anything, name: str, spec: Json) -> None:
        await self.person.create(resource, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def scale(self, replicas: int) -> None:
        """As a person does."""
        await self.person.patch(REPLICA_SETS, WEB, {"spec": {"replicas": replicas}}, subresource="scale")

    async def replicas(self) -> int:
        return (await self.person.get(REPLICA_SETS, WEB)).spec.replicas or 0

    async def status(self, name: str = "web") -> Json:
        raw = await self.person.get_raw(AUTOSCALERS, Key("default", name))
        return msgspec.json.decode(raw).get("status", {})

    async def condition(self, kind: str, name: str = "web") -> tuple[str, str]:
        found = {one["type"]: (one["status"], one["reason"]) for one in (await self.status(name)).get("conditions", ())}
        return found.get(kind, ("", ""))

    def writes(self, end: str) -> int:
        return sum(call.path.endswith(end) for call in self.line.writes())

    async def _node(self) -> None:
        """Runs what is there, and tells what it uses."""
        since = 0.0
        while True:
            pods = [pod for pod in (await self.person.list(PODS)).items if is_active(pod)]
            for pod in pods:
                if pod.status.phase != "Running":
                    await self._start(Key(pod.namespace, pod.name))
            share = self.load / len(pods) if pods else 0.0
            for pod in pods:
                self._used[pod.uid] = self._used.get(pod.uid, 0.0) + share
            if since % SAMPLED_EVERY == 0:
                self._sample({(pod.namespace, pod.name): pod.uid for pod in pods})
            since += 1.0
            await asyncio.sleep(1.0)

    async def _start(self, key: Key) -> None:
        now = timestamp(self._world.now())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        status = {"phase": "Running", "startTime": now, "conditions": [ready]}
        await self.person.patch(PODS, key, {"status": status}, subresource="status")

    def _sample(self, uids: dict[tuple[str, str], str]) -> None:
        now = self._world.now()
        containers = {
            ContainerName(namespace, name, "main"): Reading(self._used[uid], 64 << 20, at=now)
            for (namespace, name), uid in uids.items()
        }
        total = sum(self._used.values())
        self._samples.store(NODE, NodeReading(Reading(total, 1 << 30, at=now), containers), uids, now)
        self._samples.ready = True


def play(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (POOL,)) as place:
            stage = Stage(place, world)
            async with stage.running():
                await story(stage)

    in_virtual_time(main())
