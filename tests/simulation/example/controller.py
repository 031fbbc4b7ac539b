"""The shape of a controller: told a name, it reads the cache, asks the rules, carries the plan out; each step can be repeated."""

from __future__ import annotations

from herder.api.core import ConfigMap
from herder.kube.cache import BY_OWNER, owned
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import AlreadyExists, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import CONFIG_MAPS, Key, key_of
from tests.simulation.example.kind import FLOCKS, Flock
from tests.simulation.example.rules import Document, Plan, Sheep, Stray, plan_flock


class SomebodyElses(Exception):
    """A child's name is taken by an object that is not ours."""


class FlockController:
    name = "flocks"

    def __init__(self, kit: Kit) -> None:
        self.client = kit.client
        self.recorder = kit.recorder
        self.world = kit.world
        self.flocks = kit.caches.of(FLOCKS)
        self.sheep = kit.caches.of(CONFIG_MAPS)
        self.sheep.add_index(BY_OWNER)

    async def reconcile(self, key: Key) -> Result:
        flock = self.flocks.get(key)
        if flock is None or flock.being_deleted:
            return DONE  # what it owned goes with it
        plan = plan_flock(flock, self.sheep.by(BY_OWNER, owned(flock.namespace, flock.uid)), self.world.now())
        await self.carry_out(flock, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def carry_out(self, flock: Flock, plan: Plan) -> None:
        for sheep in plan.create:
            await self.create(flock, sheep)
        for stray in plan.change:
            await self.change(flock, stray)
        for stray in plan.remove:
            await self.remove(flock, stray)
        if plan.status is not None:
            await self.write_status(flock, plan.status)

    async def create(self, flock: Flock, sheep: Sheep) -> None:
        try:
            await self.client.create(CONFIG_MAPS, self.document(flock, sheep))
        except AlreadyExists:
            # Made before, and the cache does not know yet; or somebody else's.
            await self._check_owner(flock, Key(flock.namespace, sheep.name))
        else:
            self.recorder.normal(flock, "SheepCame", f"{sheep.name} has come to the flock")

    def document(self, flock: Flock, sheep: Sheep) -> Document:
        owner = {"apiVersion": FLOCKS.api_version, "kind": FLOCKS.kind, "name": flock.name, "uid": flock.uid, "controller": True}
        return {"metadata": {"name": sheep.name, "namespace": flock.namespace, "ownerReferences": [owner]}, "data": sheep.data}

    async def _check_owner(self, flock: Flock, key: Key) -> None:
        found: ConfigMap | None = await self.client.find(CONFIG_MAPS, key)
        owners = (found.metadata.owner_references or ()) if found is not None else ()
        if found is not None and not any(owner.uid == flock.uid and owner.controller for owner in owners):
            self.recorder.warning(flock, "NameTaken", f"the ConfigMap {key.name} belongs to somebody else")
            raise SomebodyElses(f"the ConfigMap {key} belongs to somebody else")

    async def change(self, flock: Flock, stray: Stray) -> None:
        seen = {"uid": stray.uid, "resourceVersion": stray.resource_version}
        await self.client.patch(CONFIG_MAPS, Key(flock.namespace, stray.name), {"metadata": seen, "data": stray.data})

    async def remove(self, flock: Flock, stray: Stray) -> None:
        try:
            await self.client.delete(CONFIG_MAPS, Key(flock.namespace, stray.name), uid=stray.uid)
        except NotFound:
            return  # removed before
        self.recorder.normal(flock, "SheepWent", f"{stray.name} has left the flock")

    async def write_status(self, flock: Flock, status: Document) -> None:
        """Applied, so that other people's conditions stay; and only onto the very state that it was judged by."""
        seen = {"uid": flock.uid, "resourceVersion": flock.metadata.resource_version}
        await self.client.apply(FLOCKS, key_of(flock), {"metadata": seen, "status": status}, subresource="status")


def start_with(make: type[FlockController]):
    """How a controllers process starts it, for one term."""

    def start(kit: Kit) -> Work:
        controller = make(kit)
        queue = kit.queue(controller.name)
        enqueue(controller.flocks, queue)
        enqueue(controller.sheep, queue, controlled_by(FLOCKS))
        return kit.work(controller, queue)

    return start


start_flocks = start_with(FlockController)
