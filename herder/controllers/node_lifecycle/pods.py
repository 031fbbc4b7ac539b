"""Pods of nodes in trouble: marked as not ready, evicted once their patience is over, removed when their node is gone for good."""

from __future__ import annotations

import asyncio

from herder.api.core import Node, Pod
from herder.controllers.hands import Hands
from herder.kube.cache import BY_NODE, Change, Stored
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.errors import NotFound, Unreadable
from herder.kube.kit import Kit
from herder.kube.resources import NODES, PODS, Key
from herder.rules.node_lifecycle import PodPlan, plan_pod, readiness, troubles

WORKERS = 16
# Not a pod: to look for those whose node was gone before we came.
EVERYWHERE = Key("", "")


class LostPods:
    name = "lost-pods"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._nodes = kit.caches.of(NODES)
        self._pods = kit.caches.of(PODS)
        self._pods.add_index(BY_NODE)
        # Since when we have known that a node is in trouble, or that it is missing: all others are no business of ours.
        self._in_trouble: dict[str, float] = {}
        self._missing: dict[str, float] = {}
        self._queue = kit.queue(self.name)
        self._clock = asyncio.get_running_loop().time

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self = cls(kit)
        self._nodes.subscribe(self._node_changed)
        self._pods.subscribe(self._pod_changed)
        self._queue.add(EVERYWHERE)
        return kit.work(self, self._queue, WORKERS, of=self._pods)

    def _node_changed(self, change: Change[Node]) -> None:
        name = change.key.name
        self._missing.pop(name, None)
        before, after = _trouble(change.old), _trouble(change.new)
        if before == after:
            return
        self._in_trouble.pop(name, None)
        if change.new is None:
            self._missing[name] = self._clock()
        elif after is not None:
            self._in_trouble[name] = self._clock()
        for key in self._pods.keys_by(BY_NODE, name) if after is not None else ():
            self._queue.add(key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        stored = change.new
        if stored is None or not stored.node:
            return
        if stored.node in self._in_trouble or (self._nodes.has_synced and Key("", stored.node) not in self._nodes):
            self._queue.add(change.key)

    async def reconcile(self, key: Key) -> Result:
        if key == EVERYWHERE:
            return self._find_orphans()
        stored = self._pods.stored(key)
        if stored is None or not stored.node:
            return DONE
        node = self._nodes.get(Key("", stored.node))
        times = self._missing if node is None else self._in_trouble
        known_for = self._clock() - times.setdefault(stored.node, self._clock())
        plan = plan_pod(stored.view, node, known_for, self._world.now())
        if plan.orphaned and await self._client.find(NODES, Key("", stored.node)) is not None:
            # It is there, and the cache does not know yet.
            return Later(1.0)
        try:
            await self._carry_out(stored, plan)
        except NotFound:
            return DONE
        return DONE if plan.next_look is None else Later(plan.next_look)

    def _find_orphans(self) -> Result:
        everything = self._pods.keys()
        for key in everything:
            stored = self._pods.stored(key)
            if stored is not None and stored.node and Key("", stored.node) not in self._nodes:
                self._queue.add(key)
        return DONE

    async def _carry_out(self, stored: Stored[Pod], plan: PodPlan) -> None:
        if plan.conditions:
            await self._hands.mark(self._pods, stored, plan.conditions)
        # Before it is gone: of an object that is not there nothing is told.
        self._hands.tell(stored.view, plan.events)
        if plan.delete is not None:
            await self._hands.delete(self._pods, stored.key.namespace, plan.delete)


def _trouble(stored: Stored[Node] | None) -> object:
    """None where there is none. What it is otherwise is only compared: other taints are another trouble."""
    if stored is None:
        return "missing"
    try:
        return (readiness(stored.view), stored.view.spec.taints) if troubles(stored.view) else None
    except Unreadable:
        return None
