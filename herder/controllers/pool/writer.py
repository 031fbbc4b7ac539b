"""Carries out a pool's plan: the only I/O on its machines, volumes and revisions. Each step is safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from herder.api import labels
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachinePool
from herder.api.memory import memory_claim
from herder.controllers.hands import Hands
from herder.controllers.pool.snapshot_builder import REVISIONS
from herder.controllers.workloads.refusals import is_refusal
from herder.kube.client import Selection
from herder.kube.errors import AlreadyExists, ApiStatusError, Conflict, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, CONTROLLER_REVISIONS, DATA_VOLUMES, MACHINES, Key, written
from herder.rules.plans import Document, Event, plain
from herder.rules.pools import events
from herder.rules.pools.actions import Adopt, Create, Remove, Resume, Suspend, Update
from herder.rules.pools.plan import PoolPlan
from herder.rules.pools.preservation import Release
from herder.rules.pools.scale import ENOUGH_REFUSALS
from herder.rules.pools.template import owner_reference
from herder.rules.suspension.memory import memory_in

# The name under which a pool's fields of a machine stand in managedFields: what people add stays, what the template drops goes.
MANAGER = "herder-pools"
AT_ONCE = 32
T = TypeVar("T", Create, Update, Remove, Suspend, Resume, Adopt, Release)


class Refused(msgspec.Struct, frozen=True):
    name: str
    message: str


class Outcome(msgspec.Struct):
    """What has come of a plan."""

    acted: bool = False
    # Names of machines that were made or updated, and what was refused.
    succeeded: list[str] = msgspec.field(default_factory=list[str])
    refused: list[Refused] = msgspec.field(default_factory=list[Refused])
    healed: int = 0
    # Somebody was faster: to be looked at again.
    conflicts: int = 0
    # The name of the template's revision is taken by something else: the next try has another one.
    collided: bool = False


class Writer:
    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._hands = Hands(kit.client, kit.recorder)
        self._machines = kit.caches.of(MACHINES)
        self._volumes = kit.caches.of(DATA_VOLUMES)
        self._claims = kit.caches.of(CLAIMS)
        self._revisions = kit.caches.of(CONTROLLER_REVISIONS, REVISIONS)

    async def carry_out(self, pool: VirtualMachinePool, plan: PoolPlan) -> Outcome:
        """In this order: what machines are made of before machines, what is taken before what is made."""
        outcome = Outcome()
        if plan.create_revision is not None and not await self._create_revision(pool, plan.create_revision):
            return Outcome(acted=True, collided=True)
        await self._keep_revisions(pool, plan)
        await self._each(pool, plan.adopt, self._adopt, outcome, events.adopted)
        await self._each(pool, plan.release, self._release, outcome)
        await self._remove(pool, plan.heal, outcome, lambda names: self._healed(names, outcome))
        kept = bool(plan.remove) and plan.remove[0].preserve
        await self._remove(pool, plan.remove, outcome, lambda names: events.removed(names, preserved=kept))
        await self._each(pool, plan.resume, self._resume, outcome, events.stay)
        await self._each(pool, plan.suspend, self._suspend, outcome, events.suspended)
        await self._each(pool, plan.activate, self._apply, outcome, events.activated)
        await self._update(pool, plan.update, outcome)
        await self._each(pool, plan.create, self._create, outcome, events.created)
        await self._each(pool, plan.standby, self._apply, outcome)
        return outcome

    @staticmethod
    def _healed(names: list[str], outcome: Outcome) -> Event:
        outcome.healed = len(names)
        return events.healed(names)

    async def _create_revision(self, pool: VirtualMachinePool, document: Document) -> bool:
        """Whether it is there now: made by us, or by who led before us."""
        key = Key(pool.namespace, document["metadata"]["name"])
        try:
            made = await self._client.create(CONTROLLER_REVISIONS, document)
        except AlreadyExists:
            made = await self._client.get(CONTROLLER_REVISIONS, key)
            if made.controller_uid != pool.uid or made.data != document["data"]:
                return False
        await self._revisions.wait_seen(made.metadata.resource_version or "")
        return True

    async def _keep_revisions(self, pool: VirtualMachinePool, plan: PoolPlan) -> None:
        if plan.renumber is not None:
            revision, number = plan.renumber
            patch = {"metadata": {"uid": revision.uid, "resourceVersion": revision.resource_version}, "revision": number}
            made = await self._client.patch(written(CONTROLLER_REVISIONS), Key(pool.namespace, revision.name), patch)
            await self._revisions.wait_seen(made.metadata.resource_version or "")
        for gone in plan.forget:
            await self._hands.delete(self._revisions, pool.namespace, gone)

    # Machines.

    async def _create(self, pool: VirtualMachinePool, wanted: Create) -> bool:
        """Only where there is nothing of that name: an apply of a version that no machine has is refused by one that is there. What
        somebody has made since the cache last heard would be taken over otherwise, and might be deleted by a scale-in."""
        key = Key(pool.namespace, wanted.name)
        nobodys = {**wanted.document["metadata"], "resourceVersion": pool.metadata.resource_version}
        try:
            made = await self._client.apply(
                written(MACHINES), key, {**wanted.document, "metadata": nobodys}, manager=MANAGER, force=False
            )
        except Conflict:
            found = await self._client.find(MACHINES, key)
            if found is not None:
                await self._machines.wait_seen(found.metadata.resource_version or "")
            return False
        await self._machines.wait_seen(made.metadata.resource_version or "")
        return True

    async def _apply(self, pool: VirtualMachinePool, wanted: Update) -> bool:
        key = Key(pool.namespace, wanted.name)
        identity = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
        if wanted.reword is not None:
            made = await self._client.patch(written(MACHINES), key, {**wanted.reword, "metadata": identity})
        else:
            document = {**wanted.document, "metadata": {**wanted.document["metadata"], **identity}}
            made = await self._client.apply(written(MACHINES), key, document, manager=MANAGER)
        await self._machines.wait_seen(made.metadata.resource_version or "")
        return wanted.reword is None

    async def _suspend(self, pool: VirtualMachinePool, wanted: Suspend) -> bool:
        key, identity = Key(pool.namespace, wanted.name), {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
        if wanted.document is not None:
            document = {**wanted.document, "metadata": {**wanted.document["metadata"], **identity}}
            made = await self._client.apply(written(MACHINES), key, document, manager=MANAGER)
        else:
            patch = {"metadata": {**identity, "annotations": {labels.SUSPENDED_BY: pool.uid}}, "spec": {"suspended": True}}
            made = await self._client.patch(written(MACHINES), key, patch)
        await self._machines.wait_seen(made.metadata.resource_version or "")
        return True

    async def _resume(self, pool: VirtualMachinePool, wanted: Resume) -> bool:
        failed = {labels.SAVE_FAILED: wanted.failure} if wanted.failure else {}
        metadata = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
        patch = {"metadata": {**metadata, "annotations": {labels.SUSPENDED_BY: None, **failed}}, "spec": {"suspended": None}}
        made = await self._client.patch(written(MACHINES), Key(pool.namespace, wanted.name), patch)
        await self._machines.wait_seen(made.metadata.resource_version or "")
        return True

    async def _adopt(self, pool: VirtualMachinePool, wanted: Adopt) -> bool:
        identity = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
        patch = {"metadata": {**identity, "ownerReferences": list(wanted.references)}}
        made = await self._client.patch(written(MACHINES), Key(pool.namespace, wanted.name), patch)
        await self._machines.wait_seen(made.metadata.resource_version or "")
        return True

    async def _update(self, pool: VirtualMachinePool, updates: Sequence[Update], outcome: Outcome) -> None:
        revision = updates[0].revision if updates else ""
        await self._each(pool, updates, self._apply, outcome, lambda names: events.updated(names, revision))

    async def _remove(
        self, pool: VirtualMachinePool, removals: Sequence[Remove], outcome: Outcome, told: Callable[[list[str]], Event]
    ) -> None:
        """Volumes that stay are listed live, too: one that the cache has not heard of would go with its machine."""
        volumes: list[DataVolume] = []
        if any(one.preserve for one in removals):
            volumes = (await self._client.list(DATA_VOLUMES, Selection(namespace=pool.namespace))).items

        async def remove(pool: VirtualMachinePool, wanted: Remove) -> bool:
            if wanted.memory and not await self._preserve_memory(pool, wanted):
                outcome.conflicts += 1
                return False
            if wanted.preserve:
                for volume in [one for one in volumes if one.controller_uid == wanted.uid and not one.being_deleted]:
                    await self._preserve(pool, volume, wanted)
            key = Key(pool.namespace, wanted.name)
            await self._client.delete(
                MACHINES, key, uid=wanted.uid, resource_version=wanted.resource_version, propagation="Foreground"
            )
            await self._machines.wait_gone(key, wanted.uid)
            return True

        await self._each(pool, removals, remove, outcome, told)

    # Volumes.

    async def _preserve_memory(self, pool: VirtualMachinePool, wanted: Remove) -> bool:
        """Asked of the API server itself: what is not saved to its end is nobody's memory. Where it is gone, or was thrown away,
        the volumes alone are kept. False while it is still to be seen."""
        claim = await self._client.find(CLAIMS, Key(pool.namespace, memory_claim(wanted.name)))
        memory = memory_in(wanted.uid, claim)
        if memory is None or claim is None:
            return True
        if memory.record.state == "Saved":
            await self._preserve(pool, claim, wanted)
        return memory.record.state != "Saving"

    async def _preserve(self, pool: VirtualMachinePool, volume: DataVolume | PersistentVolumeClaim, wanted: Remove) -> None:
        """The pool becomes a second owner: when the machine goes, the volume stays."""
        known = [reference for one in volume.metadata.owner_references or () if (reference := plain(one)) is not None]
        owned = any(one.get("uid") == pool.uid for one in known)
        given = {labels.READY_REVISION: wanted.ready_revision, labels.POOL_REVISION: wanted.revision}
        said = {name: value for name, value in given.items() if value}
        # Somebody may have begun before, and been interrupted: what its machine was ready on since then is known only now.
        if owned and all(volume.annotations.get(name) == value for name, value in said.items()):
            return
        metadata: Document = {
            "uid": volume.uid,
            "resourceVersion": volume.metadata.resource_version,
            "labels": {labels.MACHINE_NAME: wanted.name},
            "ownerReferences": known if owned else [*known, owner_reference(pool, controller=False)],
            "annotations": said,
        }
        await self._patch_owners(pool, volume.name, metadata, memory=isinstance(volume, PersistentVolumeClaim))

    async def _release(self, pool: VirtualMachinePool, wanted: Release) -> bool:
        metadata = {
            "uid": wanted.uid,
            "resourceVersion": wanted.resource_version,
            "ownerReferences": list(wanted.references),
        }
        await self._patch_owners(pool, wanted.name, metadata, memory=wanted.memory)
        return True

    async def _patch_owners(self, pool: VirtualMachinePool, name: str, metadata: Document, *, memory: bool) -> None:
        key, patch = Key(pool.namespace, name), {"metadata": metadata}
        if memory:
            claim = await self._client.patch(written(CLAIMS), key, patch)
            await self._claims.wait_seen(claim.metadata.resource_version or "")
        else:
            volume = await self._client.patch(written(DATA_VOLUMES), key, patch)
            await self._volumes.wait_seen(volume.metadata.resource_version or "")

    # All of a kind.

    async def _each(
        self,
        pool: VirtualMachinePool,
        items: Iterable[T],
        act: Callable[[VirtualMachinePool, T], Awaitable[bool]],
        outcome: Outcome,
        told: Callable[[list[str]], Event] | None = None,
    ) -> None:
        """Side by side, and each to its end: what is still on its way would be counted wrongly. One that is refused keeps nobody
        else from their turn; what passes by itself is raised when all are through."""
        waiting = list(items)
        done: list[str] = []
        failures: list[Exception] = []
        refused = 0

        async def work() -> None:
            nonlocal refused
            while waiting and refused < ENOUGH_REFUSALS and not failures:
                item = waiting.pop(0)
                outcome.acted = True
                try:
                    if await act(pool, item):
                        done.append(item.name)
                except (Conflict, NotFound):
                    outcome.conflicts += 1
                except ApiStatusError as error:
                    if not is_refusal(error):
                        failures.append(error)
                        return
                    refused += 1
                    outcome.refused.append(Refused(item.name, str(error)))
                except Exception as error:
                    failures.append(error)
                    return

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(waiting)))))
        outcome.succeeded += done
        if done and told is not None:
            self._hands.tell(pool, (told(sorted(done, key=_in_numbers)),))
        if failures:
            raise failures[0]


def _in_numbers(name: str) -> tuple[int, str]:
    return len(name), name
