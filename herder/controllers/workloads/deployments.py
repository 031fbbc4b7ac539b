"""Keeps Deployments: rolls from one ReplicaSet to the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api.core import Deployment, ReplicaSet
from herder.controllers.hands import Hands
from herder.controllers.workloads.claims import Claims
from herder.controllers.workloads.refusals import is_refusal
from herder.kube.cache import BY_NAMESPACE, BY_OWNER, Stored, owned
from herder.kube.controller import AGAIN, DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import AlreadyExists, ApiStatusError, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Key
from herder.rules.plans import Document
from herder.rules.workloads import DeploymentPlan, DeploymentSnapshot, plan_deployment
from herder.rules.workloads.claiming import selects
from herder.rules.workloads.deployment import Change, collided, creation_failed, is_ours
from herder.rules.workloads.history import REVISION
from herder.rules.workloads.pods import FINISHED
from herder.rules.workloads.templates import Member

WORKERS = 16


class Deployments:
    name = "deployments"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._deployments = kit.caches.of(DEPLOYMENTS)
        self._sets = kit.caches.of(REPLICA_SETS)
        self._pods = kit.caches.of(PODS)
        self._deployments.add_index(BY_NAMESPACE)
        self._pods.add_index(BY_OWNER)
        self._claims = Claims(kit.client, DEPLOYMENTS, self._sets)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._deployments, queue)
        # Pods need not be followed: whatever becomes of them shows in the status of their set.
        enqueue(self._sets, queue, self._deployments_of)
        return kit.work(self, queue, WORKERS, of=self._deployments)

    def _deployments_of(self, one: Stored[ReplicaSet]) -> Iterable[Key]:
        """The one that manages it, or all that would take it in."""
        if one.controller is not None:
            return controlled_by(DEPLOYMENTS)(one)
        return [key for key in self._deployments.keys_by(BY_NAMESPACE, one.key.namespace) if self._would_take(key, one)]

    def _would_take(self, key: Key, one: Stored[ReplicaSet]) -> bool:
        deployment = self._deployments.get(key)
        return deployment is not None and selects(deployment.spec.selector, dict(one.labels))

    async def reconcile(self, key: Key) -> Result:
        stored = self._deployments.stored(key)
        if stored is None:
            return DONE
        await self._claims.of(stored.view)
        snapshot = self._snapshot(stored)
        plan = plan_deployment(snapshot, self._world.now())
        if plan.create is not None and not await self._create(stored, snapshot, plan.create):
            return AGAIN
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _carry_out(self, stored: Stored[Deployment], plan: DeploymentPlan) -> None:
        for change in plan.changes:
            await self._change(stored.key.namespace, change)
        for gone in plan.delete:
            await self._hands.delete(self._sets, stored.key.namespace, gone)
        if plan.revision is not None:
            # With the status: it is no wish of anybody, and no new generation.
            patch = {"metadata": {"annotations": {REVISION: plan.revision}}}
            await self._hands.patch(self._deployments, stored, patch, "status")
            stored = self._deployments.stored(stored.key) or stored
        await self._hands.show(self._deployments, stored, plan.status)
        self._hands.tell(stored.view, plan.events)

    async def _create(self, stored: Stored[Deployment], snapshot: DeploymentSnapshot, document: Document) -> bool:
        """Whether it is there now. If something else has its name, the next try has another one."""
        name = document["metadata"]["name"]
        try:
            made = await self._client.create(REPLICA_SETS, document)
            await self._sets.wait_seen(made.metadata.resource_version or "")
        except AlreadyExists:
            return await self._met(stored, snapshot, Key(stored.key.namespace, name))
        except ApiStatusError as error:
            if is_refusal(error):
                status, event = creation_failed(snapshot, name, str(error), self._world.now())
                await self._hands.show(self._deployments, stored, status)
                self._hands.tell(stored.view, (event,))
            raise
        return True

    async def _met(self, stored: Stored[Deployment], snapshot: DeploymentSnapshot, key: Key) -> bool:
        try:
            raw = await self._client.get_raw(REPLICA_SETS, key)
        except NotFound:
            return False
        found = _member(REPLICA_SETS.decode(raw), raw)
        if is_ours(found, snapshot):
            # Made before, by us or by who led before us.
            await self._sets.wait_seen(found.view.metadata.resource_version or "")
            return True
        await self._hands.show(self._deployments, stored, collided(snapshot, self._world.now()))
        return False

    async def _change(self, namespace: str, change: Change) -> None:
        one = self._sets.stored(Key(namespace, change.name))
        if one is None:
            return
        metadata = {**change.patch.get("metadata", {}), "resourceVersion": change.resource_version}
        await self._hands.patch(self._sets, one, {**change.patch, "metadata": metadata})

    def _snapshot(self, stored: Stored[Deployment]) -> DeploymentSnapshot:
        sets = [self._sets.stored(key) for key in self._sets.keys_by(BY_OWNER, owned(stored.key.namespace, stored.uid))]
        ours = [one for one in sets if one is not None and one.controller is not None and one.controller.uid == stored.uid]
        document: dict[str, Any] = msgspec.json.decode(stored.raw)
        running = frozenset(one.key.name for one in ours if self._runs(one))
        return DeploymentSnapshot(
            stored.view, document["spec"]["template"], tuple(_member(one.view, one.raw) for one in ours), running
        )

    def _runs(self, one: Stored[ReplicaSet]) -> bool:
        pods = self._pods.by(BY_OWNER, owned(one.key.namespace, one.uid))
        return any(pod.controller_uid == one.uid and pod.status.phase not in FINISHED for pod in pods)


def _member(view: ReplicaSet, raw: bytes) -> Member:
    document: dict[str, Any] = msgspec.json.decode(raw)
    return Member(view, document["spec"]["template"])
