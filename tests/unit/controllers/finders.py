"""The finders of workloads and of budgets on real caches of an embedded engine, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api.account import ACCOUNT, SYSTEM_NAMESPACE
from herder.api.registry import INSTANCE, MACHINE, POOL
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Caches, Stored
from herder.kube.client import Client
from herder.kube.discovery import MISSED, Discovery
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Runs, Together, run_controllers
from herder.kube.resources import DEFINITIONS, PODS, Anything, Key, Resource, Written, written
from herder.server.request import AUTHENTICATED, User
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
# The account of our controllers: what the finders read, it must be allowed to.
CONTROLLERS = User(f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNT}", (AUTHENTICATED,))
# Longer than a watch takes to tell.
MOMENT = 0.5


class Finders:
    """A person who makes objects, and the finders that hear of them over a line of their own."""

    workloads: Workloads
    budgets: Budgets

    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.person: Client = place.client()
        self.line: Line = place.line(CONTROLLERS)
        self._world = world
        self.changed: list[tuple[str, str]] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        client = Client(self.line, "test")
        recorder = Recorder(client, self._world, "test", registry=CollectorRegistry())
        kit = Kit(client, Caches(client, self._world, CollectorRegistry()), recorder, self._world, CollectorRegistry())
        synced = asyncio.Event()
        task = asyncio.create_task(run_controllers(kit, (self._start,), synced.set))
        await synced.wait()
        await asyncio.sleep(MOMENT)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _start(self, kit: Kit) -> Runs:
        discovery = Discovery(kit.client)
        self.workloads = Workloads(kit, discovery)
        self.workloads.subscribe(self.changed.append)
        self.budgets = Budgets(kit, discovery, self.workloads)
        self._pods = kit.caches.of(PODS)
        return Together(self.workloads.scales.work, self.budgets)

    def pod(self, name: str) -> Stored[Any]:
        stored = self._pods.stored(Key("default", name))
        assert stored is not None
        return stored

    def reads(self, end: str = "/scale") -> list[str]:
        return [call.path for call in self.line.calls if call.path.endswith(end)]

    async def make(self, resource: Anything, name: str, spec: Json, owner: Json | None = None, **meta: Any) -> Json:
        """The reference to it, for what it is to control."""
        owned = {"ownerReferences": [owner]} if owner is not None else {}
        document = {"metadata": {"name": name, "namespace": "default", **owned, **meta}, "spec": spec}
        made = await self.person.create(written(resource), document, "default" if resource.namespaced else "")
        return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": made.uid, "controller": True}

    async def make_pod(self, name: str, owner: Json | None = None, *, ready: bool = True, labels: Json | None = None) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
        await self.make(PODS, name, spec, owner, labels=labels or {})
        await self.set_ready(name, ready)

    async def set_ready(self, name: str, ready: bool) -> None:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        await self.status(PODS, name, {"phase": "Running", "conditions": [condition]})

    async def status(self, resource: Anything, name: str, status: Json) -> None:
        await self.person.patch(resource, Key("default", name), {"status": status}, subresource="status")

    async def define(self, group: str, kind: str, *, scale: bool, version: str = "v1alpha1") -> Anything:
        """A CRD of somebody else's."""
        plural = f"{kind.lower()}s"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        scaling = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}} if scale else {}
        served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}, **scaling}}
        names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
        await self.person.create(DEFINITIONS, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})
        await asyncio.sleep(MISSED)
        return Resource(group=group, version=version, plural=plural, kind=kind, namespaced=True, view=Written)


def play(story: Callable[[Finders], Coroutine[Any, Any, None]], refusals: dict[str, Exception] | None = None) -> None:
    """`refusals`: what paths that end so are answered with from the beginning."""

    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL)) as place:
            finders = Finders(place, world)
            finders.line.refusals |= refusals or {}
            async with finders.running():
                await story(finders)

    in_virtual_time(main())
