"""Ends volumes of ours that nobody claims any more: the content first, by a pod where it is, then the object."""

from __future__ import annotations

import contextlib

import msgspec

from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import Node, PersistentVolume
from herder.api.storage import CONTENT_FINALIZER
from herder.controllers.hands import Hands
from herder.controllers.nodes import BoundNodes
from herder.kube.cache import BY_NODE, Change, Stored, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import Conflict, NotFound
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, NODES, PODS, VOLUMES, Key
from herder.rules.instances.observed import fenced
from herder.rules.volumes import VolumePlan, plan_volume
from herder.rules.volumes.importer import clearing_name

WORKERS = 4


class Reclaimer:
    name = "reclaimer"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._volumes = kit.caches.of(VOLUMES)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._pods.add_index(BY_NODE)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._volumes, queue)
        enqueue(self._pods, queue, controlled_by(VOLUMES))
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._volumes)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        """Nodes speak often. What matters is whether one is gone for good."""
        if fenced(view_of(change.old)) == fenced(view_of(change.new)):
            return
        for key in self._pods.keys_by(BY_NODE, change.key.name):
            if stored := self._pods.stored(key):
                for volume in controlled_by(VOLUMES)(stored):
                    queue.add(volume)

    async def reconcile(self, key: Key) -> Result:
        stored = self._volumes.stored(key)
        if stored is None:
            return DONE
        pod = self._pods.get(Key(SYSTEM_NAMESPACE, clearing_name(key.name)))
        pod = pod if pod is not None and pod.controller_uid == stored.uid else None
        node = await self._bound.find(pod.spec.node_name) if pod is not None and pod.spec.node_name else None
        plan = plan_volume(stored.view, msgspec.json.decode(stored.raw), pod, node, self._world.now())
        if plan.destroys and await self._is_claimed(stored.view):
            # The watch will tell more. Until then nothing is destroyed.
            return Later(1.0)
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _is_claimed(self, volume: PersistentVolume) -> bool:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            return False
        claim = await self._client.find(CLAIMS, Key(reference.namespace or "", reference.name or ""))
        return claim is not None and claim.uid == reference.uid

    async def _carry_out(self, stored: Stored[PersistentVolume], plan: VolumePlan) -> None:
        if plan.create_pod is not None:
            await self._hands.create(self._pods, plan.create_pod, stored.uid)
        if plan.delete_pod is not None:
            await self._hands.delete(self._pods, SYSTEM_NAMESPACE, plan.delete_pod)
        if plan.delete_volume:
            with contextlib.suppress(NotFound, Conflict):
                await self._client.delete(VOLUMES, stored.key, uid=stored.uid)
        if plan.remove_finalizer:
            await self._hands.let_go(self._volumes, stored, CONTENT_FINALIZER)
