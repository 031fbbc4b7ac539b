"""Empties nodes of guests: makes migrations for those that have to leave, and keeps budgets for those that must not be evicted."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance
from herder.controllers.hands import Hands
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.controllers.settings import ClusterSettings
from herder.kube.cache import BY_OWNER, Cache, Change, Index, Stored, owned, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import AlreadyExists
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import BUDGETS, INSTANCES, MIGRATIONS, NODES, Key
from herder.rules.evacuation import EvacuationPlan, EvacuationSnapshot, drained, has_to_leave, plan_evacuation
from herder.rules.migration.where import no_node_ever
from herder.rules.placement import Offer, Snapshot
from herder.rules.plans import Document, find, since

WORKERS = 8
# Of the condition `Evacuating`: neither the instance's own controller nor this one takes away what the other says.
MANAGER = "herder-evacuation"


def _where(stored: Stored[VirtualMachineInstance]) -> tuple[str, ...]:
    status = stored.view.status
    return (status.node_name,) if status is not None and status.node_name else ()


# The instances whose guests run on a node.
BY_PLACE: Index[VirtualMachineInstance] = Index("place", _where)


class Evacuation:
    name = "evacuation"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._instances = kit.caches.of(INSTANCES)
        self._migrations = kit.caches.of(MIGRATIONS)
        self._nodes = kit.caches.of(NODES)
        self._budgets = kit.caches.of(BUDGETS)
        self._settings = ClusterSettings(kit)
        # What nodes are, and not what room they have: it changes seldom.
        self._offers = Snapshot()
        # Those that no node can take. A dict and not a set: the order must not depend on hashes.
        self._stuck: dict[Key, None] = {}
        self._instances.add_index(BY_PLACE)
        self._migrations.add_index(BY_INSTANCE)
        self._budgets.add_index(BY_OWNER)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._instances, queue)
        enqueue(self._migrations, queue, lambda stored: (Key(stored.key.namespace, stored.view.spec.vmi_name),))
        enqueue(self._budgets, queue, controlled_by(INSTANCES))
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        self._settings.subscribe(lambda: _add_all(self._instances, queue))
        return kit.work(self, queue, WORKERS, of=self._instances)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        key = self._settings.of_migrations().node_drain_taint_key
        if _drained(change.old, key) != _drained(change.new, key):
            for one in self._instances.keys_by(BY_PLACE, change.key.name):
                queue.add(one)
        if _labels(change.old) != _labels(change.new):
            self._offer(change)
            for one in self._stuck:
                queue.add(one)

    def _offer(self, change: Change[Node]) -> None:
        node = view_of(change.new)
        if node is not None:
            self._offers.put_node(Offer.of(node))
        else:
            self._offers.remove_node(change.key.name)

    async def reconcile(self, key: Key) -> Result:
        self._stuck.pop(key, None)
        stored = self._instances.stored(key)
        if stored is None:
            return DONE
        snapshot = self._snapshot(stored)
        if has_to_leave(snapshot):
            snapshot = msgspec.structs.replace(snapshot, no_node=self._no_node(stored))
            if snapshot.no_node is not None:
                self._stuck[key] = None
        plan = plan_evacuation(snapshot, self._world.now())
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    def _snapshot(self, stored: Stored[VirtualMachineInstance]) -> EvacuationSnapshot:
        status = stored.view.status
        node = status.node_name if status is not None else None
        budgets = self._budgets.by(BY_OWNER, owned(stored.key.namespace, stored.uid))
        return EvacuationSnapshot(
            instance=stored.view,
            node=self._nodes.get(Key("", node)) if node else None,
            migrations=tuple(self._migrations.by(BY_INSTANCE, instance_of(stored.key.namespace, stored.key.name))),
            cluster=self._settings.of_migrations(),
            budget=(budgets[0].name, budgets[0].uid) if budgets else None,
        )

    def _no_node(self, stored: Stored[VirtualMachineInstance]) -> tuple[str, str] | None:
        """The same question that the migration would be asked first."""
        found = no_node_ever(stored.view, msgspec.json.decode(stored.raw), None, self._offers, self._nodes.list)
        return (found.reason, found.message) if found is not None else None

    async def _carry_out(self, stored: Stored[VirtualMachineInstance], plan: EvacuationPlan) -> None:
        hands, namespace = self._hands, stored.key.namespace
        if plan.create_budget is not None:
            await hands.create(self._budgets, plan.create_budget, stored.uid)
        if plan.delete_budget is not None:
            await hands.delete(self._budgets, namespace, plan.delete_budget)
        for end in plan.delete_migrations:
            await hands.delete(self._migrations, namespace, end)
        if plan.clear_wish:
            await hands.patch(self._instances, stored, {"metadata": {"annotations": {labels.EVACUATE: None}}})
        if plan.create_migration is not None:
            await self._move(plan.create_migration)
        await self._show(stored, plan.condition)
        hands.tell(stored.view, plan.events)

    async def _show(self, stored: Stored[VirtualMachineInstance], wanted: Document | None) -> None:
        """Why it does not leave, where it should; written only when it is another."""
        conditions = stored.view.status.conditions if stored.view.status is not None else None
        known = find(conditions, reasons.EVACUATING)
        if wanted is None and known is None:
            return
        if wanted is not None and known is not None and (known.reason, known.message) == (wanted["reason"], wanted["message"]):
            return
        noted = since([wanted] if wanted is not None else [], conditions, self._world.now())
        await self._hands.note(self._instances, stored, noted, MANAGER)

    async def _move(self, document: Document) -> None:
        """Of this name there is one already: made by us, and not seen yet."""
        try:
            made = await self._client.create(MIGRATIONS, document)
        except AlreadyExists:
            return
        await self._migrations.wait_seen(made.metadata.resource_version or "")


def _labels(stored: Stored[Node] | None) -> object:
    return stored.labels if stored is not None else None


def _drained(stored: Stored[Node] | None, key: str) -> bool:
    node = view_of(stored)
    return node is not None and drained(node, key)


def _add_all(instances: Cache[VirtualMachineInstance], queue: Queue) -> None:
    for key in instances.keys():  # noqa: SIM118 - a cache is no dict
        queue.add(key)
