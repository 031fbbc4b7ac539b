"""The controller of pools alone, against an engine in virtual time: what machines, guests and nodes do is up to the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from herder.api import labels
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachinePool
from herder.api.kinds.pool import VirtualMachinePoolStatus
from herder.api.registry import DATA_VOLUME, INSTANCE, MACHINE, POOL
from herder.controllers.pool import Pools
from herder.kube.client import Client, Selection
from herder.kube.resources import DATA_VOLUMES, INSTANCES, MACHINES, NODES, POOLS, Key
from herder.kube.transport import Call, Reply
from herder.rules.plans import moment, text_of
from tests.unit.controllers.term import term
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
Go = Callable[[], Awaitable[Reply]]
WEB = Key("default", "web")
# Longer than a template has to stand before machines are restarted for it, and than counts are held back.
SOON = 5.0


def template(memory: str = "64Mi", strategy: str = "Halted") -> Json:
    return {"spec": {"runStrategy": strategy, "template": {"spec": {"domain": {"memory": {"guest": memory}}}}}}


class Interrupted:
    """A transport over which something else happens around one call."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.close = line.close
        self.stream = line.stream
        self._method, self._name = "", ""
        self._around: Callable[[Go], Awaitable[Reply]] | None = None

    def around(self, method: str, machine: str, happen: Callable[[Go], Awaitable[Reply]]) -> None:
        """Done once, in place of the next such call about that machine."""
        self._method, self._name, self._around = method, machine, happen

    def before(self, method: str, machine: str, happen: Callable[[], Awaitable[Any]]) -> None:
        async def first(go: Go) -> Reply:
            await happen()
            return await go()

        self.around(method, machine, first)

    @property
    def waits(self) -> bool:
        """Whether that call has not come yet."""
        return self._around is not None

    async def send(self, call: Call) -> Reply:
        happen = self._around
        if happen is None or call.method != self._method or not call.path.endswith(f"/virtualmachines/{self._name}"):
            return await self._line.send(call)
        self._around = None
        return await happen(lambda: self._line.send(call))


class Stage:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.person: Client = place.client()
        self.world = world
        self._place = place

    def transport(self) -> Interrupted:
        return Interrupted(self._place.line())

    def leads(self, over: Interrupted | None = None) -> AbstractAsyncContextManager[None]:
        """From one to the next: somebody who knows nothing but what is stored."""
        return term(Client(over or self.transport(), "test"), self.world, Pools.start)

    # What people do.

    async def make(self, replicas: int, wanted: Json | None = None, **spec: Any) -> VirtualMachinePool:
        metadata = {"name": WEB.name, "namespace": WEB.namespace}
        whole = {"replicas": replicas, "template": wanted or template(), **spec}
        return await self.person.create(POOLS, {"metadata": metadata, "spec": whole})

    async def change(self, **spec: Any) -> None:
        await self.person.patch(POOLS, WEB, {"spec": spec})
        await asyncio.sleep(SOON)

    async def keeps(
        self, disk: str, machine: str, pool: VirtualMachinePool, *finalizers: str, of: VirtualMachine | None = None
    ) -> DataVolume:
        """A disk that the pool keeps of a machine that is gone; or one that it began to keep of a machine that is there."""
        owners: list[Json] = [{"apiVersion": POOL.api_version, "kind": POOL.kind, "name": pool.name, "uid": pool.uid}]
        if of is not None:
            kind = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind}
            owners.append({**kind, "name": of.name, "uid": of.uid, "controller": True})
        metadata = {"name": disk, "namespace": WEB.namespace, "labels": {labels.MACHINE_NAME: machine}, "ownerReferences": owners}
        spec = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Mi"}}}}
        return await self.person.create(DATA_VOLUMES, {"metadata": {**metadata, "finalizers": list(finalizers)}, "spec": spec})

    # What others see.

    async def machines(self) -> dict[str, VirtualMachine]:
        listed = (await self.person.list(MACHINES, Selection(namespace=WEB.namespace))).items
        return {one.name: one for one in sorted(listed, key=lambda one: one.name)}

    async def machine(self, name: str) -> VirtualMachine:
        return await self.person.get(MACHINES, Key(WEB.namespace, name))

    async def status(self) -> VirtualMachinePoolStatus:
        found = (await self.person.get(POOLS, WEB)).status
        assert found is not None
        return found

    # What controllers of machines and nodes say.

    async def fails(self, name: str, times: int = 3) -> None:
        """It does not start, since now and so often in a row."""
        failure = {"consecutiveFailCount": times, "firstFailureTimestamp": text_of(moment(self.world.now()))}
        await self.person.patch(MACHINES, Key(WEB.namespace, name), {"status": {"startFailure": failure}}, subresource="status")

    async def runs(self, name: str, revision: str, node: str = "node-1", *, ready: bool = True) -> str:
        """It has another instance from now on, made from that revision; its uid."""
        machine = await self.machine(name)
        key = Key(WEB.namespace, name)
        if await self.person.find(INSTANCES, key) is not None:
            await self.person.delete(INSTANCES, key)
        owner = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "name": name, "uid": machine.uid, "controller": True}
        metadata = {
            "name": name,
            "namespace": key.namespace,
            "labels": {labels.POOL_REVISION: revision},
            "ownerReferences": [owner],
        }
        made = await self.person.create(INSTANCES, {"metadata": metadata, "spec": {"domain": {"memory": {"guest": "64Mi"}}}})
        since = text_of(moment(self.world.now()))
        condition = {"type": "Ready", "status": "True" if ready else "False", "reason": "Said", "lastTransitionTime": since}
        said = {"phase": "Running", "nodeName": node, "conditions": [condition]}
        await self.person.patch(INSTANCES, key, {"status": said}, subresource="status")
        return made.uid

    async def node(self, name: str, *, answers: bool) -> None:
        if await self.person.find(NODES, Key("", name)) is None:
            await self.person.create(NODES, {"metadata": {"name": name}})
        said = [{"type": "Ready", "status": "True" if answers else "Unknown", "reason": "Said", "message": ""}]
        await self.person.patch(NODES, Key("", name), {"status": {"conditions": said}}, subresource="status")
        await asyncio.sleep(SOON)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL, DATA_VOLUME)) as place:
            await story(Stage(place, world))

    in_virtual_time(main())
