"""Pods of nodes in trouble: marked as not ready, evicted once their patience is over, removed when their node is gone for good."""

from __future__ import annotations

import asyncio

from herder.api.core import Node, Pod
from herder.controllers.hands import Hands
from herder.controllers.nodes import BoundNodes
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
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._pods = kit.caches.of(PODS)
        self._pods.add_index(BY_NODE)
        # Since when we have known that a node is in trouble, or that it is missing: all others are no business of ours. One that is
        # missing is remembered while pods are bound to it: nodes come and go for ever under new names.
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
        bound = self._pods.keys_by(BY_NODE, name)
        if change.new is None:
            if bound:
                self._missing[name] = self._clock()
        elif after is not None:
            self._in_trouble[name] = self._clock()
        for key in bound if after is not None else ():
            self._queue.add(key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        stored = change.new
        if stored is None and change.old is not None and not self._pods.keys_by(BY_NODE, change.old.node):
            self._missing.pop(change.old.node, None)
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
        plan = plan_pod(stored.view, self._nodes.get(Key("", stored.node)), self._known_for(stored.node), self._world.now())
        if plan.orphaned and await self._bound.find(stored.node) is not None:
            # The cache does not know yet.
            return Later(1.0)
        try:
            await self._carry_out(stored, plan)
        except NotFound:
            return DONE
        return DONE if plan.next_look is None else Later(plan.next_look)

    def _known_for(self, name: str) -> float:
        """For how long we have known that the node is missing or in trouble."""
        node = self._nodes.get(Key("", name))
        if node is None:
            return self._clock() - self._missing.setdefault(name, self._clock())
        # One that is well by now has nothing that would have to be remembered.
        return self._clock() - self._in_trouble.get(name, self._clock())

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
