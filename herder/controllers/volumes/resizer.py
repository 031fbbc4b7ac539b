"""Grows volumes of ours whose claims ask for more: the disk first, by a pod where it is, then what volume and claim say of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from herder.api import labels
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from herder.controllers.hands import Hands
from herder.controllers.nodes import BoundNodes
from herder.controllers.volumes.data_volumes import BY_SOURCE
from herder.controllers.volumes.using import BY_CLAIM, FINISHED, claim_value
from herder.kube.cache import BY_NODE, BY_OWNER, Change, Stored, owned, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import NotFound
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, DATA_VOLUMES, NODES, PODS, VOLUMES, Key, key_of
from herder.rules.instances.observed import fenced
from herder.rules.volumes import GrowthPlan, GrowthSnapshot, plan_growth
from herder.rules.volumes.growing import wants_more

WORKERS = 4
_volume_of = controlled_by(VOLUMES)


class Resizer:
    name = "resizer"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._claims = kit.caches.of(CLAIMS)
        self._volumes = kit.caches.of(VOLUMES)
        self._data_volumes = kit.caches.of(DATA_VOLUMES)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._data_volumes.add_index(BY_SOURCE)
        for index in (BY_OWNER, BY_NODE, BY_CLAIM):
            self._pods.add_index(index)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._claims, queue)
        enqueue(self._volumes, queue, _claim_of)
        enqueue(self._pods, queue, self._grown_by)
        # Who fills a claim, copies it, or runs with it matters only while it grows.
        enqueue(self._data_volumes, queue, lambda stored: self._growing((stored.key,)))
        enqueue(self._pods, queue, lambda stored: self._growing(self._used_by(stored)))
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._claims)

    def _grown_by(self, stored: Stored[Pod]) -> tuple[Key, ...]:
        """The claim of the volume that the pod works on."""
        volumes = _volume_of(stored) if stored.key.namespace == SYSTEM_NAMESPACE else ()
        known = (self._volumes.stored(key) for key in volumes)
        return tuple(key for volume in known if volume is not None for key in _claim_of(volume))

    def _used_by(self, stored: Stored[Pod]) -> Iterable[Key]:
        for value in BY_CLAIM.values(stored):
            namespace, _, name = value.partition("/")
            yield Key(namespace, name)
        for owner in controlled_by(DATA_VOLUMES)(stored):
            # One that copies a claim, of this namespace or of another.
            data_volume = self._data_volumes.get(owner)
            source = data_volume.spec.source.pvc if data_volume is not None else None
            if source is not None:
                yield Key(source.namespace or owner.namespace, source.name)

    def _growing(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        return tuple(key for key in keys if (claim := self._claims.get(key)) is not None and wants_more(claim))

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        """Nodes speak often. What matters is whether one is gone for good."""
        if fenced(view_of(change.old)) == fenced(view_of(change.new)):
            return
        for key in self._pods.keys_by(BY_NODE, change.key.name):
            if stored := self._pods.stored(key):
                for claim in (*self._grown_by(stored), *self._growing(self._used_by(stored))):
                    queue.add(claim)

    async def reconcile(self, key: Key) -> Result:
        stored = self._claims.stored(key)
        if stored is None or not stored.view.spec.volume_name:
            return DONE
        volume = self._volumes.stored(Key("", stored.view.spec.volume_name))
        pods = tuple(self._growing_pods(volume))
        if not pods and not wants_more(stored.view):
            return DONE
        plan = plan_growth(await self._snapshot(stored.view, volume, pods), self._world.now())
        await self._carry_out(stored, volume, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    def _growing_pods(self, volume: Stored[PersistentVolume] | None) -> Iterable[Pod]:
        found = self._pods.by(BY_OWNER, owned(SYSTEM_NAMESPACE, volume.uid)) if volume is not None else ()
        return (pod for pod in found if pod.labels.get(labels.IMPORT_ATTEMPT))

    async def _snapshot(
        self, claim: PersistentVolumeClaim, volume: Stored[PersistentVolume] | None, pods: tuple[Pod, ...]
    ) -> GrowthSnapshot:
        guests = [pod for pod in self._pods.by(BY_CLAIM, claim_value(claim.namespace, claim.name)) if _runs_guest(pod)]
        nodes = await self._bound.of((*pods, *guests))
        places = dict.fromkeys(pod.spec.node_name for pod in (*pods, *guests) if pod.spec.node_name)
        return GrowthSnapshot(
            claim=claim,
            volume=volume.view if volume is not None else None,
            volume_document=msgspec.json.decode(volume.raw) if volume is not None else {},
            data_volume=self._data_volumes.get(key_of(claim)),
            pods=pods,
            users=tuple(dict.fromkeys(pod.spec.node_name for pod in guests)),
            lost=frozenset(name for name in places if fenced(nodes.get(name))),
            copied_by=self._copier(claim),
        )

    def _copier(self, claim: PersistentVolumeClaim) -> str:
        for data_volume in self._data_volumes.by(BY_SOURCE, claim_value(claim.namespace, claim.name)):
            at_work = self._pods.by(BY_OWNER, owned(data_volume.namespace, data_volume.uid))
            if any(pod.status.phase not in FINISHED for pod in at_work):
                return data_volume.name
        return ""

    async def _carry_out(
        self, stored: Stored[PersistentVolumeClaim], volume: Stored[PersistentVolume] | None, plan: GrowthPlan
    ) -> None:
        """The claim tells last what it has: until then all of it is done again."""
        with contextlib.suppress(NotFound):
            if plan.capacity and volume is not None:
                await self._hands.patch(self._volumes, volume, {"spec": {"capacity": {"storage": plan.capacity}}})
            if plan.status is not None:
                await self._hands.merge_status(self._claims, stored, plan.status)
        if plan.create_pod is not None and volume is not None:
            await self._hands.create(self._pods, plan.create_pod, volume.uid)
        for end in plan.delete_pods:
            await self._hands.delete(self._pods, SYSTEM_NAMESPACE, end)
        self._hands.tell(stored.view, plan.events)


def _runs_guest(pod: Pod) -> bool:
    """Or is about to. Nobody but our controllers may make such a pod."""
    return labels.GUEST in pod.annotations and bool(pod.spec.node_name) and pod.status.phase not in FINISHED


def _claim_of(stored: Stored[PersistentVolume]) -> tuple[Key, ...]:
    reference = stored.view.spec.claim_ref
    return (Key(reference.namespace or "", reference.name or ""),) if reference is not None else ()
