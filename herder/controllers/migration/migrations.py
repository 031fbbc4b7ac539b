"""Keeps VirtualMachineInstanceMigrations."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.guest import MigrationOrder
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.controllers.hands import Hands
from herder.controllers.migration.looking import Looking
from herder.controllers.migration.metrics import MigrationMetrics
from herder.controllers.migration.turns import Turns
from herder.kube.cache import BY_NODE, Change, Stored, view_of
from herder.kube.controller import AGAIN, DONE, Later, Result
from herder.kube.enqueue import enqueue
from herder.kube.errors import NotFound
from herder.kube.kit import Kit, Runs
from herder.kube.queue import Queue
from herder.kube.resources import INSTANCES, PODS, Key
from herder.rules.instances.observed import trust
from herder.rules.migration import MigrationPlan, plan_migration
from herder.rules.migration.leftovers import too_many
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
        self._turns = Turns(kit.client, kit.world, self._look, self._show, self._call)
        self._metrics = MigrationMetrics(kit.registry, self._turns.line)
        kit.at_end(self._metrics.end)

    @classmethod
    def start(cls, kit: Kit) -> Runs:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        look = self._look
        look.pods.add_index(BY_NODE)
        self._turns.subscribe()
        enqueue(look.migrations, queue)
        enqueue(look.pods, queue, self._of_pod)
        enqueue(look.instances, queue, lambda stored: look.keys_of_instance(stored.key.namespace, stored.key.name))
        look.nodes.subscribe(self._node_changed)
        look.migrations.subscribe(self._count)
        return kit.work(self, queue, WORKERS, of=look.migrations)

    # Who has to look when something changes.

    def _call(self, key: Key) -> None:
        """There may be room for it. Others may have come by the thousand: those wait, and it is looked at first."""
        self._queue.add_ahead(key)

    def _of_pod(self, stored: Stored[Any]) -> tuple[Key, ...]:
        owner = stored.controller
        if owner is None or owner.kind != INSTANCES.kind:
            return ()
        return self._look.keys_of_instance(stored.key.namespace, owner.name)

    def _node_changed(self, change: Change[Node]) -> None:
        """Nodes speak often. What matters is whether they answer, and whether they are fenced."""
        if trust(view_of(change.old)) == trust(view_of(change.new)):
            return
        for key in self._look.pods.keys_by(BY_NODE, change.key.name):
            if (pod := self._look.pods.stored(key)) is not None:
                for one in self._of_pod(pod):
                    self._queue.add(one)

    def _count(self, change: Change[VirtualMachineInstanceMigration]) -> None:
        self._metrics.seen(view_of(change.old), view_of(change.new), self._world.now())

    # One migration.

    async def reconcile(self, key: Key) -> Result:
        await self._turns.be_sure(key)
        stored = self._look.migrations.stored(key)
        if stored is None:
            return DONE
        plan = plan_migration(await self._look.snapshot(stored, self._turns.crowded), self._world.now())
        if plan.gone is not None and await self._is_there(stored, plan.gone):
            # The cache does not know yet.
            return AGAIN
        if plan.add_finalizer:
            stored = await self._hands.hold(self._look.migrations, stored, labels.MIGRATION_FINALIZER)
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _is_there(self, stored: Stored[VirtualMachineInstanceMigration], name: str) -> bool:
        """Somebody else's pod may have the name by now: it is not the one that was lost."""
        pod = await self._client.find(PODS, Key(stored.key.namespace, name))
        return pod is not None and any(owner.kind == INSTANCES.kind for owner in pod.metadata.owner_references or ())

    async def _carry_out(self, stored: Stored[VirtualMachineInstanceMigration], plan: MigrationPlan) -> None:
        hands, pods, namespace = self._hands, self._look.pods, stored.key.namespace
        if plan.begins is not None:
            await self._turns.begin(stored, plan.begins)
        elif plan.comes_in is not None:
            await self._turns.come_in(stored, plan.comes_in)
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

    async def _show(self, stored: Stored[VirtualMachineInstanceMigration], status: Document) -> None:
        await self._hands.show(self._look.migrations, stored, status, unchanged=True)

    async def _tell(self, namespace: str, pod: str, annotation: str, value: str | None) -> None:
        stored = self._look.pods.stored(Key(namespace, pod))
        if stored is not None:
            # One that is gone meanwhile has no order any more; that it is gone makes us look again.
            with contextlib.suppress(NotFound):
                await self._hands.patch(self._look.pods, stored, {"metadata": {"annotations": {annotation: value}}})

    async def _forget_old(self, stored: Stored[VirtualMachineInstanceMigration]) -> None:
        """People want to see the last few, and nobody wants thousands."""
        for old in too_many(self._look.of_instance(stored.key.namespace, stored.view.spec.vmi_name)):
            await self._hands.delete(self._look.migrations, stored.key.namespace, Delete(old.name, old.uid))


def _text(order: MigrationOrder | None) -> str | None:
    return msgspec.json.encode(plain(order)).decode() if order is not None else None
