"""Keeps VirtualMachines: makes and ends their instances as their run strategy says, and makes their DataVolumes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api import labels, reasons
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import VirtualMachine
from herder.api.memory import machine_of, memory_claim
from herder.controllers.hands import Hands
from herder.kube.cache import Cache, Index, Stored
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.errors import Conflict, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, DATA_VOLUMES, INSTANCES, MACHINES, Key
from herder.rules.machines import MachineSnapshot, TakeBack, plan_machine
from herder.rules.machines.preserved import is_preserved, was_kept
from herder.rules.plans import find
from herder.rules.suspension.memory import memory_in

WORKERS = 16


def _volume_names(stored: Stored[VirtualMachine]) -> Iterable[str]:
    templates = stored.view.spec.data_volume_templates or ()
    return [f"{stored.key.namespace}/{template.metadata.name}" for template in templates]


# Which machines want a DataVolume of this name, whoever owns it.
BY_VOLUME: Index[Any] = Index("data-volume-template", _volume_names)


class Machines:
    name = "machines"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._machines = kit.caches.of(MACHINES)
        self._instances = kit.caches.of(INSTANCES)
        self._volumes = kit.caches.of(DATA_VOLUMES)
        self._claims = kit.caches.of(CLAIMS)
        self._client = kit.client
        self._machines.add_index(BY_VOLUME)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._machines, queue)
        # Of the same name, and not only those that it owns: one of someone else is in the way.
        enqueue(self._instances, queue)
        enqueue(self._volumes, queue, lambda volume: self._machines.keys_by(BY_VOLUME, str(volume.key)))
        enqueue(self._claims, queue, _machines_of)
        return kit.work(self, queue, WORKERS, of=self._machines)

    async def reconcile(self, key: Key) -> Result:
        stored = self._machines.stored(key)
        if stored is None:
            return DONE
        instance = self._instances.stored(key)
        plan = plan_machine(await self._snapshot(stored), self._world.now())
        owner = stored.uid
        # The status first: what is known about a failure must not be lost with the instance that failed. Before an instance is
        # made there is nothing to lose, and it will be written anyway once there is one.
        if plan.create_instance is None or stored.view.status is not None:
            await self._hands.show(self._machines, stored, plan.status)
        for kept in plan.take_back:
            await self._take_back(self._volumes, key.namespace, kept)
        if plan.take_memory_back is not None:
            await self._take_back(self._claims, key.namespace, plan.take_memory_back)
        for wiped in plan.delete_data_volumes:
            # In the foreground: its name stays held until its claim is gone, too.
            await self._hands.delete(self._volumes, key.namespace, wiped, propagation="Foreground")
        for volume in plan.create_data_volumes:
            await self._hands.create(self._volumes, volume, owner)
        if plan.delete_instance is not None:
            await self._hands.delete(self._instances, key.namespace, plan.delete_instance)
        if plan.drop_memory is not None:
            await self._hands.delete(self._claims, key.namespace, plan.drop_memory)
        if plan.create_instance is not None:
            await self._hands.create(self._instances, plan.create_instance, owner)
        if plan.update_instance is not None and instance is not None:
            # That it is gone makes us look again.
            with contextlib.suppress(NotFound):
                await self._hands.patch(self._instances, instance, plan.update_instance)
        if plan.reprovisioned:
            await self._reprovisioned(stored)
        self._hands.tell(stored.view, plan.events)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _reprovisioned(self, before: Stored[VirtualMachine]) -> None:
        """Of that very spec: what its pool has asked for since with another one stays."""
        stored = self._machines.stored(before.key)
        if stored is None or stored.uid != before.uid or stored.view.metadata.generation != before.view.metadata.generation:
            return
        asked = {"annotations": {labels.REPROVISION: None}, "resourceVersion": str(stored.version)}
        # That somebody was faster makes us look again.
        with contextlib.suppress(Conflict, NotFound):
            await self._hands.patch(self._machines, stored, {"metadata": asked})

    async def _take_back(self, cache: Cache[Any], namespace: str, kept: TakeBack) -> None:
        """That it is gone, or is another one, makes us look again."""
        volume = cache.stored(Key(namespace, kept.name))
        if volume is not None and volume.uid == kept.uid:
            await self._hands.patch(cache, volume, kept.patch)

    async def _memory_claim(self, stored: Stored[VirtualMachine]) -> PersistentVolumeClaim | None:
        """Of one that is suspended, or was just now, or was made to go on from what its pool kept, that it has none is asked of the
        API server itself: what it boots from rests on it."""
        key = Key(stored.key.namespace, memory_claim(stored.key.name))
        claim, machine = self._claims.get(key), stored.view
        status = machine.status
        was_suspended = status is not None and find(status.conditions, reasons.SUSPENDED) is not None
        unknown = claim is None or (memory_in(stored.uid, claim) is None and not is_preserved(machine, claim))
        if (claim is None and was_suspended) or (unknown and was_kept(machine)):
            return await self._client.find(CLAIMS, key)
        return claim

    async def _snapshot(self, stored: Stored[VirtualMachine]) -> MachineSnapshot:
        namespace = stored.key.namespace
        templates = stored.view.spec.data_volume_templates or ()
        names = [template.metadata.name for template in templates]
        claim = await self._memory_claim(stored)
        volumes = {name: volume for name in names if (volume := self._volumes.get(Key(namespace, name))) is not None}
        return MachineSnapshot(
            machine=stored.view,
            document=msgspec.json.decode(stored.raw),
            instance=self._instances.get(stored.key),
            data_volumes=volumes,
            memory=memory_in(stored.uid, claim),
            memory_claim=claim,
        )


def _machines_of(claim: Stored[PersistentVolumeClaim]) -> tuple[Key, ...]:
    """Of a claim for memory, whose it is. There are many claims, and hardly any is one."""
    name = machine_of(claim.key.name)
    return (Key(claim.key.namespace, name),) if name and _ANNOTATION in claim.raw else ()


_ANNOTATION = labels.MEMORY.encode()
