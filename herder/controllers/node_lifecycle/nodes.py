"""Hears which nodes are there, by their Leases, and writes on each Node what follows: conditions, and the taints that close it."""

from __future__ import annotations

import asyncio

from herder.api.core import Lease, Node
from herder.controllers.hands import Hands
from herder.controllers.node_lifecycle.taints import put_taints
from herder.kube.cache import Change, Stored
from herder.kube.client import Selection
from herder.kube.controller import AGAIN, DONE, Later, Result, Work
from herder.kube.errors import NotFound, Unreadable
from herder.kube.kit import Kit, Start
from herder.kube.queue import Queue
from herder.kube.resources import LEASES, NODES, Key
from herder.rules.node_lifecycle import NodePlan, Patience, is_settled, last_heartbeat, plan_node

WORKERS = 16
LEASE_NAMESPACE = "kube-node-lease"


class NodeHealth:
    name = "node-health"

    def __init__(self, kit: Kit, patience: Patience) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._patience = patience
        self._nodes = kit.caches.of(NODES)
        self._leases = kit.caches.of(LEASES, Selection(namespace=LEASE_NAMESPACE))
        # When we last heard of each, on the clock that nobody sets. A new leader has heard of everybody just now.
        self._heard: dict[str, float] = {}
        self._clock = asyncio.get_running_loop().time

    @classmethod
    def with_patience(cls, patience: Patience) -> Start:
        def start(kit: Kit) -> Work:
            self, queue = cls(kit, patience), kit.queue(cls.name)
            self._leases.subscribe(self._lease_changed)
            self._nodes.subscribe(lambda change: self._node_changed(change, queue))
            return kit.work(self, queue, WORKERS, of=self._nodes)

        return start

    def _lease_changed(self, change: Change[Lease]) -> None:
        """Only the time is noted. Thousands of these come while nothing happens: a timer for each node looks at it, once it could
        have become too long."""
        if change.new is not None:
            self._heard[change.key.name] = self._clock()

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        name = change.key.name
        if change.new is None:
            self._heard.pop(name, None)
            return
        if name not in self._heard or _speaks(change.old) != _speaks(change.new):
            self._heard[name] = self._clock()
        if _is_settled(change.new):
            queue.add_after(change.key, self._patience.grace)
        else:
            queue.add(change.key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._nodes.stored(key)
        if stored is None:
            return DONE
        lease = self._leases.get(Key(LEASE_NAMESPACE, key.name))
        lasts = lease.spec.lease_duration_seconds or 0 if lease is not None else 0
        silent = self._clock() - self._heard.get(key.name, self._clock())
        plan = plan_node(stored.view, silent, lasts, self._patience, self._world.now())
        try:
            await self._carry_out(stored, plan)
        except NotFound:
            return DONE
        if plan.conditions:
            # By now it is a node in trouble, which has to look like one.
            return AGAIN
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _carry_out(self, stored: Stored[Node], plan: NodePlan) -> None:
        if plan.conditions:
            # It may have said just now that it is well.
            await self._hands.mark(self._nodes, stored, plan.conditions, unchanged=True)
        if plan.taints is not None:
            await put_taints(self._hands, self._nodes, stored, plan.taints)
        self._hands.tell(stored.view, plan.events)


def _speaks(stored: Stored[Node] | None) -> object:
    try:
        return last_heartbeat(stored.view) if stored is not None else None
    except Unreadable:
        return None


def _is_settled(stored: Stored[Node]) -> bool:
    try:
        return is_settled(stored.view)
    except Unreadable:
        return True
