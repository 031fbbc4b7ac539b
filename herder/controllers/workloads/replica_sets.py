"""Keeps ReplicaSets: so many pods of their template, no more and no less."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import Pod, ReplicaSet
from herder.controllers.hands import Hands
from herder.controllers.workloads.batches import all_of, in_batches
from herder.controllers.workloads.claims import Claims
from herder.controllers.workloads.refusals import is_ending, is_refusal
from herder.kube.cache import BY_NAMESPACE, BY_OWNER, Stored, owned
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import ApiStatusError, KubeError, ServerFailed
from herder.kube.kit import Kit
from herder.kube.resources import PODS, REPLICA_SETS, Key, key_of
from herder.rules.plans import Delete, Event
from herder.rules.workloads import ReplicaSetSnapshot, plan_replica_set, replica_set_status
from herder.rules.workloads.claiming import selects
from herder.rules.workloads.replica_set import names, pod_document

WORKERS = 16


class ReplicaSets:
    name = "replica-sets"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._sets = kit.caches.of(REPLICA_SETS)
        self._pods = kit.caches.of(PODS)
        self._sets.add_index(BY_NAMESPACE)
        self._sets.add_index(BY_OWNER)
        self._claims = Claims(kit.client, REPLICA_SETS, self._pods)
        self._client = kit.client
        # Pods that we asked for and heard nothing of, by their set: they may be there, and the cache not know yet.
        self._in_doubt: dict[Key, set[Key]] = {}

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._sets, queue)
        enqueue(self._pods, queue, self._sets_of)
        return kit.work(self, queue, WORKERS, of=self._sets)

    def _sets_of(self, pod: Stored[Pod]) -> Iterable[Key]:
        """The one that manages it, or all that would take it in."""
        if pod.controller is not None:
            return controlled_by(REPLICA_SETS)(pod)
        return [key for key in self._sets.keys_by(BY_NAMESPACE, pod.key.namespace) if self._would_take(key, pod)]

    def _would_take(self, key: Key, pod: Stored[Pod]) -> bool:
        one = self._sets.get(key)
        return one is not None and selects(one.spec.selector, dict(pod.labels))

    async def reconcile(self, key: Key) -> Result:
        stored = self._sets.stored(key)
        await self._clear_doubts(key)
        if stored is None:
            return DONE
        await self._claims.of(stored.view)
        failure, next_look = await self._carry_out(stored)
        # As the pods are now.
        status, wait = replica_set_status(self._snapshot(stored), str(failure) if failure else "", self._world.now())
        await self._hands.show(self._sets, stored, status)
        if failure is not None:
            raise failure
        looks = [seconds for seconds in (wait, next_look) if seconds is not None]
        return Later(min(looks)) if looks else DONE

    async def _clear_doubts(self, key: Key) -> None:
        """A pod that is there must be counted before another one is made in its place."""
        for doubtful in sorted(self._in_doubt.get(key, ())):
            found = await self._client.find(PODS, doubtful)
            if found is not None:
                await self._pods.wait_seen(found.metadata.resource_version or "")
        self._in_doubt.pop(key, None)

    async def _carry_out(self, stored: Stored[ReplicaSet]) -> tuple[ApiStatusError | None, float | None]:
        """What kept us from it, where the server said so: that is news for people. What passes by itself is not. And in how many
        seconds there is more to do."""
        snapshot = self._snapshot(stored)
        plan = plan_replica_set(snapshot, self._world.now())
        try:
            if plan.create:
                await self._create(snapshot, plan.create)
            await all_of(self._delete(stored.view, one) for one in plan.delete)
        except ApiStatusError as error:
            if is_refusal(error):
                return error, plan.next_look
            if not is_ending(error):
                raise
        return None, plan.next_look

    async def _create(self, snapshot: ReplicaSetSnapshot, count: int) -> None:
        one = snapshot.replica_set
        free = (name for name in names(snapshot) if Key(one.namespace, name) not in self._pods)
        await in_batches(list(islice(free, count)), lambda name: self._create_one(snapshot, name))

    async def _create_one(self, snapshot: ReplicaSetSnapshot, name: str) -> None:
        one = snapshot.replica_set
        try:
            await self._hands.create(self._pods, pod_document(snapshot, name), one.uid)
        except KubeError as error:
            if not isinstance(error, ApiStatusError) or isinstance(error, ServerFailed):
                self._in_doubt.setdefault(key_of(one), set()).add(Key(one.namespace, name))
            if is_refusal(error):
                self._hands.tell(one, (Event("Warning", reasons.FAILED_CREATE, f"Error creating: {error}"),))
            raise
        self._hands.tell(one, (Event("Normal", reasons.SUCCESSFUL_CREATE, f"Created pod: {name}"),))

    async def _delete(self, one: ReplicaSet, wanted: Delete) -> None:
        await self._hands.delete(self._pods, one.namespace, wanted)
        self._hands.tell(one, (Event("Normal", reasons.SUCCESSFUL_DELETE, f"Deleted pod: {wanted.name}"),))

    def _snapshot(self, stored: Stored[ReplicaSet]) -> ReplicaSetSnapshot:
        owner = stored.controller
        siblings: tuple[Key, ...] = (
            self._sets.keys_by(BY_OWNER, owned(stored.key.namespace, owner.uid)) if owner is not None else ()
        )
        sets = [found for key in siblings if (found := self._sets.stored(key)) is not None]
        related = tuple(pod for one in sets for pod in self._of(one))
        document: dict[str, Any] = msgspec.json.decode(stored.raw)
        return ReplicaSetSnapshot(stored.view, document["spec"]["template"], tuple(self._of(stored)), related)

    def _of(self, stored: Stored[ReplicaSet]) -> list[Pod]:
        """Those that it manages; one may own a pod and not manage it."""
        return [pod for pod in self._pods.by(BY_OWNER, owned(stored.key.namespace, stored.uid)) if pod.controller_uid == stored.uid]
