"""Keeps VirtualMachinePools (seed 003): as many machines as wanted, each up to date, those that fail made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from herder.api.backoff import doubled
from herder.api.kinds import VirtualMachinePool
from herder.controllers.configuration import HerderConfig
from herder.controllers.hands import Hands
from herder.controllers.pool.members import Members, pool_owner
from herder.controllers.pool.metrics import PoolMetrics
from herder.controllers.pool.snapshot_builder import REVISIONS, SnapshotBuilder
from herder.controllers.pool.writer import Outcome, Writer
from herder.kube.cache import Change, Stored
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, CONTROLLER_REVISIONS, DATA_VOLUMES, INSTANCES, MACHINES, NODES, POOLS, Key
from herder.rules.pools import PoolPlan, events, plan_pool
from herder.rules.pools.snapshot import PoolSnapshot, Refusal

WORKERS = 4
# What happens within this time is looked at together: machines of a pool tend to change at the same moment.
TOGETHER = 0.02
# Between two writes of a pool's counts.
STATUS_EVERY = 1.0
# Until somebody else's write, which was faster, is looked at.
CONFLICTS_AFTER = 0.1
FIRST_RETRY = 10.0
LONGEST_RETRY = 300.0


class Pools:
    name = "pools"

    def __init__(self, kit: Kit, queue: Queue, status_every: float) -> None:
        self._status_every = status_every
        self._world = kit.world
        self._queue = queue
        self._hands = Hands(kit.client, kit.recorder)
        self._pools = kit.caches.of(POOLS)
        self._config = HerderConfig(kit.caches)
        caches = kit.caches
        self._members = Members(caches.of(MACHINES), caches.of(INSTANCES), caches.of(NODES), caches.of(CLAIMS), self._wake)
        self._snapshots = SnapshotBuilder(kit, self._members, self._config)
        self._writer = Writer(kit)
        self._metrics = PoolMetrics(kit, self._pools)
        # What was refused, by pool and machine: how often, and the last answer. Lost with the term: then it is tried at once.
        self._refusals: dict[str, dict[str, tuple[int, Refusal]]] = {}
        # Which spec it was about: a person who has mended the template does not wait.
        self._refused_at: dict[str, int | None] = {}
        self._shown: dict[str, float] = {}

    @classmethod
    def start(cls, kit: Kit, status_every: float = STATUS_EVERY) -> Work:
        queue = kit.queue(cls.name)
        self = cls(kit, queue, status_every)
        enqueue(self._pools, queue)
        self._pools.subscribe(self._pool_changed)
        enqueue(kit.caches.of(CONTROLLER_REVISIONS, REVISIONS), queue, _owning_pools)
        enqueue(kit.caches.of(DATA_VOLUMES), queue, _owning_pools)
        enqueue(kit.caches.of(CLAIMS), queue, _owning_pools)
        self._config.subscribe(self._wake_all)
        return kit.work(self, queue, WORKERS, of=self._pools)

    def _wake(self, key: Key) -> None:
        if key in self._pools:
            self._queue.add_after(key, TOGETHER)

    def _wake_all(self) -> None:
        for key in self._pools.keys():  # noqa: SIM118 - a cache, not a dict
            self._wake(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._pools.stored(key)
        if stored is None or stored.deleting:
            # The garbage collector takes its machines and volumes, or leaves them, as it was asked.
            return DONE
        try:
            return await self._reconcile(stored)
        finally:
            # What came of it was remembered although the pool went meanwhile.
            if not self._is_there(stored):
                self._forget(stored.uid)

    async def _reconcile(self, stored: Stored[VirtualMachinePool]) -> Result:
        snapshot = self._snapshots.cached(stored, self._refused(stored))
        plan = plan_pool(snapshot, self._world.now())
        if plan.destroys:
            snapshot, plan = await self._look_live(stored, snapshot, plan)
        if plan.heal or _fails_now(stored, plan):
            # Who was healed and which revision failed must not be lost with who found it out: nothing else will show it afterwards.
            await self._show(stored, plan)
        outcome = await self._writer.carry_out(snapshot.pool, plan)
        if outcome.healed:
            self._metrics.healed(snapshot.pool, outcome.healed)
        if outcome.collided:
            # Written before the next try: who leads then must come to the same name.
            collided = {**plan.status, "collisionCount": plan.status.get("collisionCount", 0) + 1}
            await self._show(stored, msgspec.structs.replace(plan, status=collided))
            return Later(0)
        self._remember(stored, outcome)
        return await self._conclude(stored, plan, outcome)

    async def _look_live(
        self, stored: Stored[VirtualMachinePool], snapshot: PoolSnapshot, plan: PoolPlan
    ) -> tuple[PoolSnapshot, PoolPlan]:
        """The same again, from what the API server says now. Of machines that are to be wiped also whether they run by now: a look
        at those may find others in their place."""
        wiped: set[str] = set()
        while True:
            wiped |= {one.name for one in plan.heal}
            snapshot = await self._snapshots.live(stored, snapshot.refusals, wiped)
            plan = plan_pool(snapshot, self._world.now())
            if wiped.issuperset(one.name for one in plan.heal):
                return snapshot, plan

    async def _conclude(self, before: Stored[VirtualMachinePool], plan: PoolPlan, outcome: Outcome) -> Result:
        """Shows how things are by now, and says when to look again."""
        stored = self._pools.stored(before.key)
        if stored is None:
            return DONE
        if outcome.acted or stored.version != before.version:
            plan = plan_pool(self._snapshots.cached(stored, self._refused(stored)), self._world.now())
        self._forget_refusals(stored.uid, plan.refused)
        waits = [plan.next_look] if plan.next_look is not None else []
        if outcome.conflicts:
            waits.append(CONFLICTS_AFTER)
        pause = self._status_every
        left = min(pause, self._shown.get(stored.uid, 0.0) + pause - self._world.now())
        if not self._hands.is_shown(stored, plan.status):
            if left > 0:
                waits.append(left)
            else:
                await self._show(stored, plan)
        return Later(min(waits)) if waits else DONE

    async def _show(self, stored: Stored[VirtualMachinePool], plan: PoolPlan) -> None:
        """Only where nobody has written since: who was healed and which revision failed cannot be seen anew, and what a leader of
        before says too late must not come in its place."""
        self._shown[stored.uid] = self._world.now()
        await self._hands.show(self._pools, stored, plan.status, unchanged=True)
        self._hands.tell(stored.view, plan.events)

    # What was refused.

    def _refused(self, stored: Stored[VirtualMachinePool]) -> Mapping[str, Refusal]:
        if self._refused_at.get(stored.uid) != stored.view.metadata.generation:
            self._refusals.pop(stored.uid, None)
        # One that nobody has tried again for so long is wanted no more.
        oldest = self._world.now() - LONGEST_RETRY
        known = self._refusals.get(stored.uid, {})
        for name in [name for name, (_, refusal) in known.items() if refusal.retry < oldest]:
            del known[name]
        return {name: refusal for name, (_, refusal) in known.items()}

    def _remember(self, stored: Stored[VirtualMachinePool], outcome: Outcome) -> None:
        known = self._refusals.setdefault(stored.uid, {})
        self._refused_at[stored.uid] = stored.view.metadata.generation
        for name in outcome.succeeded:
            known.pop(name, None)
        for refused in outcome.refused:
            times = known[refused.name][0] + 1 if refused.name in known else 1
            retry = self._world.now() + doubled(FIRST_RETRY, LONGEST_RETRY, times - 1)
            known[refused.name] = (times, Refusal(refused.message, retry))
        if outcome.refused:
            first = outcome.refused[0]
            is_there = first.name in self._members.of(stored.key.namespace, stored.uid)
            self._hands.tell(stored.view, (events.refused(first.name, first.message, is_there=is_there),))

    def _forget_refusals(self, uid: str, still: frozenset[str]) -> None:
        known = self._refusals.get(uid, {})
        for name in [name for name in known if name not in still]:
            del known[name]

    def _pool_changed(self, change: Change[VirtualMachinePool]) -> None:
        """Most pools are gone without a look at them on their way out."""
        if change.old is not None and not self._is_there(change.old):
            self._forget(change.old.uid)

    def _is_there(self, pool: Stored[VirtualMachinePool]) -> bool:
        now = self._pools.stored(pool.key)
        return now is not None and now.uid == pool.uid

    def _forget(self, uid: str) -> None:
        self._refusals.pop(uid, None)
        self._refused_at.pop(uid, None)
        self._shown.pop(uid, None)
        self._snapshots.forget(uid)


def _fails_now(stored: Stored[VirtualMachinePool], plan: PoolPlan) -> bool:
    failed = plan.status.get("failedRevision")
    return failed is not None and failed != (stored.view.status.failed_revision if stored.view.status else None)


def _owning_pools(stored: Stored[Any]) -> Iterable[Key]:
    owners = (pool_owner(stored.owners, controller=controller) for controller in (True, False))
    return [Key(stored.key.namespace, owner.name) for owner in owners if owner is not None]
