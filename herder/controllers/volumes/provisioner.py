"""Makes a PersistentVolume for each claim of a class of ours. Binding the two is the business of the cluster."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Node, PersistentVolume
from herder.api.storage import volume_name
from herder.controllers.hands import Hands
from herder.kube.cache import Change, Stored
from herder.kube.controller import DONE, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.errors import AlreadyExists
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, NODES, STORAGE_CLASSES, VOLUMES, Key
from herder.rules.volumes import plan_claim

WORKERS = 8


class Provisioner:
    name = "provisioner"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._hands = Hands(kit.client, kit.recorder)
        self._claims = kit.caches.of(CLAIMS)
        self._volumes = kit.caches.of(VOLUMES)
        self._classes = kit.caches.of(STORAGE_CLASSES)
        self._nodes = kit.caches.of(NODES)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._claims, queue)
        enqueue(self._volumes, queue, _claim_of)
        enqueue(self._classes, queue, lambda _: self._unbound())
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._claims)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        if change.new is not None and (change.old is None or _offer(change.old) != _offer(change.new)):
            for key in self._unbound():
                queue.add(key)

    def _unbound(self) -> list[Key]:
        return [Key(one.namespace, one.name) for one in self._claims.list() if not one.spec.volume_name]

    async def reconcile(self, key: Key) -> Result:
        claim = self._claims.get(key)
        if claim is None or claim.spec.volume_name or not claim.spec.storage_class_name:
            return DONE
        storage_class = self._classes.get(Key("", claim.spec.storage_class_name))
        volume = self._volumes.get(Key("", volume_name(claim.uid)))
        plan = plan_claim(claim, storage_class, volume, self._nodes.list())
        if plan.create_volume is not None:
            try:
                made = await self._client.create(VOLUMES, plan.create_volume)
            except AlreadyExists:
                made = await self._client.get(VOLUMES, Key("", volume_name(claim.uid)))
            await self._volumes.wait_seen(made.metadata.resource_version or "")
        self._hands.tell(claim, plan.events)
        return DONE


def _claim_of(stored: Stored[PersistentVolume]) -> tuple[Key, ...]:
    reference = stored.view.spec.claim_ref
    return (Key(reference.namespace or "", reference.name or ""),) if reference is not None else ()


def _offer(stored: Stored[Node]) -> tuple[object, ...]:
    node = stored.view
    return (node.labels.get(labels.STORAGE), node.labels.get(labels.SCHEDULABLE), node.spec.unschedulable)
