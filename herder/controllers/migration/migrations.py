"""Keeps VirtualMachineInstanceMigrations."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.guest import MigrationOrder
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.controllers.hands import Hands
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.controllers.migration.looking import Looking
from herder.controllers.migration.metrics import MigrationMetrics
from herder.kube.cache import BY_NODE, Change, Stored, view_of
from herder.kube.controller import AGAIN, DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.errors import ApiStatusError
from herder.kube.kit import Kit, Runs
from herder.kube.queue import Queue
from herder.kube.resources import INSTANCES, MIGRATIONS, PODS, Key
from herder.rules.instances.observed import trust
from herder.rules.migration import Limits, Line, MigrationPlan, plan_migration
from herder.rules.migration.leftovers import too_many
from herder.rules.migration.status import waiting
from herder.rules.plans import Delete, Document, plain

WORKERS = 8


class Migrations:
    name = "migrations"

    def __init__(self, kit: Kit, queue: Queue) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._look = Looking(kit)
        self._queue = queue
        self._line = Line(self._look.leaves)
        self._metrics = MigrationMetrics(kit.registry, self._line)
        # One at a time is let through: who is counted must be seen before the next is.
        self._door = asyncio.Lock()
        # Written, and no answer: whether they have begun is not known until the server is asked.
        self._doubtful: set[Key] = set()

    @classmethod
    def start(cls, kit: Kit) -> Runs:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        look = self._look
        look.pods.add_index(BY_NODE)
        look.migrations.subscribe(self._migration_changed)
        enqueue(look.migrations, queue)
        enqueue(look.pods, queue, self._of_pod)
        enqueue(look.instances, queue, lambda stored: self._of(stored.key.namespace, stored.key.name))
        look.nodes.subscribe(self._node_changed)
        look.settings.cache.subscribe(lambda change: self._call_next())
        return _Term(kit.work(self, queue, WORKERS), self._metrics)

    # Who has to look when something changes.

    def _of(self, namespace: str, instance: str) -> tuple[Key, ...]:
        return self._look.migrations.keys_by(BY_INSTANCE, instance_of(namespace, instance))

    def _of_pod(self, stored: Stored[Any]) -> tuple[Key, ...]:
        owner = stored.controller
        return self._of(stored.key.namespace, owner.name) if owner is not None and owner.kind == INSTANCES.kind else ()

    def _node_changed(self, change: Change[Node]) -> None:
        """Nodes speak often. What matters is whether they answer, and whether they are fenced."""
        if trust(view_of(change.old)) == trust(view_of(change.new)):
            return
        for key in self._look.pods.keys_by(BY_NODE, change.key.name):
            if (pod := self._look.pods.stored(key)) is not None:
                for one in self._of_pod(pod):
                    self._queue.add(one)

    def _migration_changed(self, change: Change[VirtualMachineInstanceMigration]) -> None:
        self._metrics.seen(view_of(change.old), view_of(change.new), self._world.now())
        if change.key in self._doubtful:
            # Only the server can say which of the two came first.
            return
        before = self._line.place(_name(change.key))
        self._line.put(_name(change.key), view_of(change.new))
        if self._line.place(_name(change.key)) != before:
            self._call_next()

    def _call_next(self) -> None:
        """There may be room now. Nobody polls for it."""
        limits = self._limits()
        for name in (*self._line.next_up(limits), *self._line.at_the_door()):
            self._queue.add(Key(*name))

    def _limits(self) -> Limits:
        cluster = self._look.settings.of_migrations()
        return Limits(cluster.parallel_per_cluster, cluster.parallel_outbound_per_node, cluster.parallel_inbound_per_node)

    # One migration.

    async def reconcile(self, key: Key) -> Result:
        if key in self._doubtful:
            await self._ask(key)
        stored = self._look.migrations.stored(key)
        if stored is None:
            return DONE
        plan = plan_migration(self._look.snapshot(stored, self._line.full(self._limits())), self._world.now())
        if plan.gone is not None and await self._client.find(PODS, Key(key.namespace, plan.gone)) is not None:
            # It is there, and the cache does not know yet.
            return AGAIN
        if plan.add_finalizer:
            stored = await self._hands.hold(self._look.migrations, stored, labels.MIGRATION_FINALIZER)
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _carry_out(self, stored: Stored[VirtualMachineInstanceMigration], plan: MigrationPlan) -> None:
        hands, pods, namespace = self._hands, self._look.pods, stored.key.namespace
        if plan.begins is not None:
            await self._begin(stored, plan.begins)
        elif plan.comes_in is not None:
            await self._come_in(stored, plan.comes_in)
        elif plan.status is not None:
            await self._show(stored, plan.status)
        if plan.create_pod is not None:
            await hands.create(pods, plan.create_pod, plan.create_pod["metadata"]["ownerReferences"][0]["uid"])
        if plan.order is not None:
            await self._tell(namespace, plan.order[0], labels.MIGRATION, _text(plan.order[1]))
        if plan.grant:
            await self._tell(namespace, plan.grant, labels.RESUME, stored.uid)
        for end in plan.delete_pods:
            await hands.delete(pods, namespace, end)
        if plan.remove_finalizer:
            await hands.let_go(self._look.migrations, stored, labels.MIGRATION_FINALIZER)
        hands.tell(stored.view, plan.events)
        if plan.finished:
            await self._forget_old(stored)

    async def _begin(self, stored: Stored[VirtualMachineInstanceMigration], begun: Document) -> None:
        async with self._door:
            limits = self._limits()
            why = self._line.why_waiting(_name(stored.key), begun["sourceNode"], limits)
            if why[0]:
                await self._show(stored, waiting(stored.view, *why, self._world.now()))
            else:
                await self._let_through(stored, begun)

    async def _come_in(self, stored: Stored[VirtualMachineInstanceMigration], document: Document) -> None:
        async with self._door:
            limits, target = self._limits(), document["targetNode"]
            if self._line.may_come_in(target, limits):
                await self._let_through(stored, document)
                return
            reason, message = self._line.why_not_in(target, limits)
            await self._show(stored, document | _scheduled(document, reason, message))

    async def _let_through(self, stored: Stored[VirtualMachineInstanceMigration], document: Document) -> None:
        """Counted before it is written: an answer that is lost must not make room for one too many."""
        self._doubtful.add(stored.key)
        self._line.put(_name(stored.key), _as_shown(stored.view, document))
        try:
            await self._show(stored, document)
        except ApiStatusError:
            self._settle(stored.key)
            raise
        self._settle(stored.key)

    async def _ask(self, key: Key) -> None:
        found = await self._client.find(MIGRATIONS, key)
        if found is not None:
            await self._look.migrations.wait_seen(found.metadata.resource_version or "")
        self._settle(key)

    def _settle(self, key: Key) -> None:
        self._doubtful.discard(key)
        self._line.put(_name(key), view_of(self._look.migrations.stored(key)))
        self._call_next()

    async def _show(self, stored: Stored[VirtualMachineInstanceMigration], status: Document) -> None:
        await self._hands.show(self._look.migrations, stored, status)

    async def _tell(self, namespace: str, pod: str, annotation: str, value: str | None) -> None:
        stored = self._look.pods.stored(Key(namespace, pod))
        if stored is not None:
            await self._hands.patch(self._look.pods, stored, {"metadata": {"annotations": {annotation: value}}})

    async def _forget_old(self, stored: Stored[VirtualMachineInstanceMigration]) -> None:
        """People want to see the last few, and nobody wants thousands."""
        for old in too_many(self._look.of_instance(stored.key.namespace, stored.view.spec.vmi_name)):
            await self._hands.delete(self._look.migrations, stored.key.namespace, Delete(old.name, old.uid))


class _Term:
    def __init__(self, work: Work, metrics: MigrationMetrics) -> None:
        self._work = work
        self._metrics = metrics

    async def run(self) -> None:
        try:
            await self._work.run()
        finally:
            self._metrics.end()


def _name(key: Key) -> tuple[str, str]:
    return (key.namespace, key.name)


def _as_shown(migration: VirtualMachineInstanceMigration, status: Document) -> VirtualMachineInstanceMigration:
    kind = type(migration)
    return msgspec.convert({**(plain(migration) or {}), "status": status}, type=kind)


def _scheduled(document: Document, reason: str, message: str) -> Document:
    """It has its place, and waits before the door."""
    reached = [one for one in document["phaseTransitionTimestamps"] if one["phase"] != "PreparingTarget"]
    return {"phase": "Scheduled", "reason": reason, "message": message, "phaseTransitionTimestamps": reached}


def _text(order: MigrationOrder | None) -> str | None:
    return msgspec.json.encode(plain(order)).decode() if order is not None else None
