"""Suspends machines: saves the memory of their guests into a claim, and throws it away once it was used."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolumeClaim, Pod
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.labels import IMPORT, MEMORY, NOT_RESUMED, RESUME_FROM
from herder.api.memory import SavedMemory, machine_of, memory_claim
from herder.controllers.hands import Hands
from herder.controllers.launchers import LAUNCHERS_OF
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.kube.cache import BY_OWNER, Cache, Stored, owned
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, INSTANCES, MACHINES, MIGRATIONS, NODES, PODS, STORAGE_CLASSES, Key
from herder.rules.instances.needs import claims_of, needs_of
from herder.rules.instances.plan import launcher_of
from herder.rules.instances.pods import active_pod
from herder.rules.machines.children import template_hash
from herder.rules.migration.phases import finished
from herder.rules.plans import find, since
from herder.rules.suspension.claim import class_for, record_text
from herder.rules.suspension.plan import SuspensionPlan, SuspensionSnapshot, plan_suspension

WORKERS = 4
MANAGER = "herder-suspensions"
_SUSPENDED = b'"suspended":'
_CONDITION = b'"Suspended"'
_MEMORY = MEMORY.encode()
_OF_MEMORY = (RESUME_FROM.encode(), NOT_RESUMED.encode())
_instance_of_pod = controlled_by(INSTANCES)


def memory_key(stored: Stored[Any]) -> Key:
    """The claim for the memory of a machine, or of the machine of an instance, which has its name."""
    return Key(stored.key.namespace, memory_claim(stored.key.name))


async def write_record(hands: Hands, claims: Cache[PersistentVolumeClaim], key: Key, record: SavedMemory) -> None:
    """Only over the very state that was looked at: memory is given to one."""
    claim = claims.stored(key)
    if claim is None:
        return
    metadata = {"annotations": {MEMORY: record_text(record)}, "resourceVersion": str(claim.version)}
    await hands.patch(claims, claim, {"metadata": metadata})


class Suspensions:
    name = "suspensions"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._machines = kit.caches.of(MACHINES)
        self._instances = kit.caches.of(INSTANCES)
        self._claims = kit.caches.of(CLAIMS)
        self._classes = kit.caches.of(STORAGE_CLASSES)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._migrations = kit.caches.of(MIGRATIONS)
        self._migrations.add_index(BY_INSTANCE)
        self._pods.add_index(LAUNCHERS_OF)
        self._pods.add_index(BY_OWNER)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._machines, queue, lambda stored: (stored.key,) if self._matters(stored) else ())
        enqueue(self._claims, queue, self._machine_of_claim)
        enqueue(self._instances, queue, lambda stored: self._known(stored.key))
        enqueue(self._pods, queue, lambda stored: (key for one in _instance_of_pod(stored) for key in self._known(one)))
        enqueue(self._migrations, queue, lambda stored: self._known(Key(stored.key.namespace, stored.view.spec.vmi_name)))
        return kit.work(self, queue, WORKERS, of=self._machines)

    def _known(self, key: Key) -> tuple[Key, ...]:
        """Of all machines hardly any is suspended; of the others nothing that happens to them matters here."""
        machine = self._machines.stored(key)
        return (key,) if machine is not None and self._matters(machine) else ()

    def _matters(self, machine: Stored[VirtualMachine]) -> bool:
        named = _SUSPENDED in machine.raw or _CONDITION in machine.raw
        return named or memory_key(machine) in self._claims or self._was_to_resume(machine.key)

    def _machine_of_claim(self, claim: Stored[PersistentVolumeClaim]) -> tuple[Key, ...]:
        """Also one that records nothing, since a machine may wait until it is gone."""
        name = machine_of(claim.key.name)
        key = Key(claim.key.namespace, name)
        return () if not name else (key,) if _MEMORY in claim.raw else self._known(key)

    def _was_to_resume(self, key: Key) -> bool:
        instance = self._instances.stored(key)
        return instance is not None and any(name in instance.raw for name in _OF_MEMORY)

    async def reconcile(self, key: Key) -> Result:
        stored = self._machines.stored(key)
        if stored is None:
            return DONE
        plan = plan_suspension(self._snapshot(stored), self._world.now())
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _carry_out(self, stored: Stored[VirtualMachine], plan: SuspensionPlan) -> None:
        hands, namespace = self._hands, stored.key.namespace
        if plan.create_claim is not None:
            await hands.create(self._claims, plan.create_claim, stored.uid)
        if plan.record is not None:
            await write_record(hands, self._claims, memory_key(stored), plan.record)
        for end in plan.delete_savers:
            await hands.delete(self._pods, namespace, end)
        if plan.create_saver is not None:
            await hands.create(self._pods, plan.create_saver, plan.create_saver["metadata"]["ownerReferences"][0]["uid"])
        if plan.delete_claim is not None:
            await hands.delete(self._claims, namespace, plan.delete_claim)
        await self._show(stored, plan)
        hands.tell(stored.view, plan.events)

    async def _show(self, stored: Stored[VirtualMachine], plan: SuspensionPlan) -> None:
        """Written only when it is another."""
        conditions = stored.view.status.conditions if stored.view.status is not None else None
        known, wanted = find(conditions, reasons.SUSPENDED), plan.condition
        if wanted is None and known is None:
            return
        same = ("status", "reason", "message")
        if wanted is not None and known is not None and all(getattr(known, name) == wanted[name] for name in same):
            return
        noted = since([wanted] if wanted is not None else [], conditions, self._world.now())
        await self._hands.note(self._machines, stored, noted, MANAGER)

    def _snapshot(self, stored: Stored[VirtualMachine]) -> SuspensionSnapshot:
        document = msgspec.json.decode(stored.raw)
        found = self._instances.get(stored.key)
        instance = found if found is not None and found.controller_uid == stored.uid else None
        launcher = self._launcher(instance) if instance is not None else None
        return SuspensionSnapshot(
            machine=stored.view,
            document=document,
            template_hash=template_hash(document),
            instance=instance,
            launcher=launcher,
            node=self._nodes.get(Key("", launcher.spec.node_name)) if launcher is not None else None,
            claim=self._claims.get(memory_key(stored)),
            savers=self._savers(instance) if instance is not None else (),
            migrates=any(not finished(one) for one in self._migrations.by(BY_INSTANCE, instance_of(*stored.key))),
            storage_class=class_for(self._classes.list()),
            disks=self._disks(instance) if instance is not None else {},
        )

    def _launcher(self, instance: VirtualMachineInstance) -> Pod | None:
        pods = self._pods.by(LAUNCHERS_OF, owned(instance.namespace, instance.uid))
        ordered = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.name))
        return active_pod(tuple(ordered), launcher_of(instance))

    def _savers(self, instance: VirtualMachineInstance) -> tuple[Pod, ...]:
        return tuple(pod for pod in self._pods.by(BY_OWNER, owned(instance.namespace, instance.uid)) if IMPORT in pod.annotations)

    def _disks(self, instance: VirtualMachineInstance) -> dict[str, str]:
        names = claims_of(needs_of(instance.spec))
        found = ((name, self._claims.get(Key(instance.namespace, name))) for name in names)
        return {name: claim.uid for name, claim in found if claim is not None}
