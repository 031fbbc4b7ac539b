"""Keeps DataVolumes: makes the claim and the pod that fills it, and shows how far it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api.core import Node, PersistentVolumeClaim, Pod
from herder.api.kinds import DataVolume
from herder.controllers.hands import Hands
from herder.controllers.nodes import BoundNodes
from herder.controllers.volumes.using import BY_CLAIM, claim_value, writer_of
from herder.kube.cache import BY_NODE, BY_OWNER, Change, Index, Stored, owned
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, DATA_VOLUMES, NODES, PODS, STORAGE_CLASSES, VOLUMES, Key, key_of
from herder.rules.instances.observed import fenced
from herder.rules.volumes import DataVolumeSnapshot, Source, plan_data_volume

WORKERS = 8


def _source(stored: Stored[DataVolume]) -> Iterable[str]:
    source = stored.view.spec.source.pvc
    return [claim_value(source.namespace or stored.key.namespace, source.name)] if source is not None else ()


def _bound_to(stored: Stored[PersistentVolumeClaim]) -> Iterable[str]:
    return (stored.view.spec.volume_name,) if stored.view.spec.volume_name else ()


# Which DataVolumes copy this claim; which claim is bound to this volume.
BY_SOURCE: Index[Any] = Index("clone-source", _source)
BY_VOLUME: Index[Any] = Index("bound-volume", _bound_to)


class DataVolumes:
    name = "data-volumes"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._data_volumes = kit.caches.of(DATA_VOLUMES)
        self._claims = kit.caches.of(CLAIMS)
        self._volumes = kit.caches.of(VOLUMES)
        self._classes = kit.caches.of(STORAGE_CLASSES)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._data_volumes.add_index(BY_SOURCE)
        self._claims.add_index(BY_VOLUME)
        for index in (BY_OWNER, BY_NODE, BY_CLAIM):
            self._pods.add_index(index)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._data_volumes, queue, lambda stored: (stored.key, *self._copies(stored.key)))
        # Of the same name, whoever owns it: one of someone else is in the way. And those that are copied.
        enqueue(self._claims, queue, lambda stored: (stored.key, *self._copies(stored.key)))
        enqueue(self._volumes, queue, lambda stored: self._claims.keys_by(BY_VOLUME, stored.key.name))
        enqueue(self._pods, queue, controlled_by(DATA_VOLUMES))
        enqueue(self._pods, queue, self._copied_from)
        enqueue(self._classes, queue, lambda _: self._waiting())
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._data_volumes)

    def _copies(self, key: Key) -> tuple[Key, ...]:
        return self._data_volumes.keys_by(BY_SOURCE, claim_value(key.namespace, key.name))

    def _copied_from(self, stored: Stored[Pod]) -> list[Key]:
        return [key for value in BY_CLAIM.values(stored) for key in self._data_volumes.keys_by(BY_SOURCE, value)]

    def _waiting(self) -> list[Key]:
        """Those whose claim may have waited for a class."""
        return [key for key in tuple(self._data_volumes.keys()) if key not in self._claims]

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        """Nodes speak often. What matters is whether one is gone for good."""
        if _lost(change.old) == _lost(change.new):
            return
        for pod in self._pods.by(BY_NODE, change.key.name):
            if stored := self._pods.stored(key_of(pod)):
                for key in controlled_by(DATA_VOLUMES)(stored):
                    queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._data_volumes.stored(key)
        if stored is None:
            return DONE
        plan = plan_data_volume(await self._snapshot(stored), self._world.now())
        if plan.status is not None:
            await self._hands.show(self._data_volumes, stored, plan.status)
        for end in plan.delete_pods:
            await self._hands.delete(self._pods, key.namespace, end)
        if plan.create_claim is not None:
            await self._hands.create(self._claims, plan.create_claim, stored.uid)
        if plan.create_pod is not None:
            await self._hands.create(self._pods, plan.create_pod, stored.uid)
        self._hands.tell(stored.view, plan.events)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _snapshot(self, stored: Stored[DataVolume]) -> DataVolumeSnapshot:
        claim = self._claims.get(stored.key)
        pods = tuple(self._pods.by(BY_OWNER, owned(stored.key.namespace, stored.uid)))
        nodes = await self._bound.of(pods)
        return DataVolumeSnapshot(
            data_volume=stored.view,
            document=msgspec.json.decode(stored.raw),
            classes=tuple(self._classes.list()),
            claim=claim,
            volume=self._volumes.get(Key("", claim.spec.volume_name)) if claim and claim.spec.volume_name else None,
            pods=pods,
            nodes=nodes,
            source=self._source_of(stored),
        )

    def _source_of(self, stored: Stored[DataVolume]) -> Source | None:
        named = stored.view.spec.source.pvc
        if named is None:
            return None
        key = Key(named.namespace or stored.key.namespace, named.name)
        claim = self._claims.get(key)
        mounted = self._pods.by(BY_CLAIM, claim_value(key.namespace, key.name))
        return Source(
            namespace=key.namespace,
            name=key.name,
            claim=claim,
            volume=self._volumes.get(Key("", claim.spec.volume_name)) if claim and claim.spec.volume_name else None,
            filled_by=self._data_volumes.get(key),
            used_by=writer_of(mounted, key.name),
        )


def _lost(stored: Stored[Node] | None) -> bool:
    return fenced(stored.view if stored is not None else None)
