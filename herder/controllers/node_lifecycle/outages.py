"""Decides over all nodes at once which of those that are away are emptied: one key, so that nobody else decides meanwhile."""

from __future__ import annotations

from herder.api.core import Node
from herder.controllers.hands import Hands
from herder.controllers.node_lifecycle.taints import put_taints
from herder.kube.cache import Change, Stored
from herder.kube.controller import AGAIN, DONE, Later, Result, Work
from herder.kube.errors import NotFound, Unreadable
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import NODES, Key
from herder.rules.node_lifecycle import plan_outages, readiness, with_emptying, without_emptying

ALL = Key("", "all")
# Nodes come, go and fall silent together: one look at all of them, not one for each.
TOGETHER = 1.0


class Outages:
    name = "outages"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._nodes = kit.caches.of(NODES)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        if _looks(change.old) != _looks(change.new):
            queue.add_after(ALL, TOGETHER)

    async def reconcile(self, key: Key) -> Result:
        plan = plan_outages(self._nodes.list(), self._world.now())
        for name in plan.empty:
            await self._put(name, empty=True)
        for name in plan.spare:
            await self._put(name, empty=False)
        if plan.empty or plan.spare:
            return AGAIN
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _put(self, name: str, *, empty: bool) -> None:
        stored = self._nodes.stored(Key("", name))
        if stored is None:
            return
        taints = with_emptying(stored.view, self._world.now()) if empty else without_emptying(stored.view)
        try:
            await put_taints(self._hands, self._nodes, stored, taints)
        except NotFound:
            return


def _looks(stored: Stored[Node] | None) -> object:
    """What matters of a node here: whether it is there, whether it is well, and how it is tainted."""
    try:
        return (readiness(stored.view), stored.view.spec.taints) if stored is not None else None
    except Unreadable:
        return None
