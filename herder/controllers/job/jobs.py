"""Carries out PodMigrationJobs that were admitted, and follows all of them to their end (seed 004)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.arbitrator import Arbitrator
from herder.controllers.job.budgets import BudgetKey, Budgets
from herder.controllers.job.flow_control import FlowControl
from herder.controllers.job.gate import Gate
from herder.controllers.job.indexes import BY_CONTROLLER_REF, BY_POD, BY_REFERENCE
from herder.controllers.job.job_metrics import JobMetrics
from herder.controllers.job.retries import Retries
from herder.controllers.job.snapshot_builder import SnapshotBuilder
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.controllers.job.writer import NotEvicted, NotMade, Writer
from herder.controllers.reservations import taken_reservations
from herder.kube.cache import Change, Stored, view_of
from herder.kube.controller import DONE, Later, Result
from herder.kube.discovery import Discovery
from herder.kube.enqueue import enqueue
from herder.kube.errors import ApiStatusError, ServerFailed, TooManyRequests, Unreadable
from herder.kube.kit import Kit, Runs, Together
from herder.kube.queue import Queue
from herder.kube.resources import INSTANCES, JOBS, MIGRATIONS, PODS, REPLICA_SETS, RESERVATIONS, STATEFUL_SETS, Key
from herder.rules.herder_config import JOBS as JOBS_FILE
from herder.rules.herder_config.jobs import MOST_CONCURRENT
from herder.rules.jobs.budgets import SEVERAL_BUDGETS
from herder.rules.jobs.execution.eviction import has_begun
from herder.rules.jobs.execution.lifecycle import eviction_refused, held_plan, plan_job, reservation_refused, undoes, waiting_plan
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import FINISHED, is_over

# A turn that comes sooner than this is not worth a write.
WORTH_TELLING = 2.0
# How far a job is, is told at most so often.
TOLD_EVERY = 1.0


class PodMigrationJobs:
    name = "podmigrationjobs"

    def __init__(self, kit: Kit, queue: Queue) -> None:
        self._world = kit.world
        self._queue = queue
        self._jobs = kit.caches.of(JOBS)
        self._instances = kit.caches.of(INSTANCES)
        for index in (BY_POD, BY_REFERENCE, BY_CONTROLLER_REF):
            self._jobs.add_index(index)
        discovery = Discovery(kit.client)
        self._config = HerderConfig(kit.caches)
        self.workloads = Workloads(kit, discovery)
        self.budgets = Budgets(kit, discovery, self.workloads)
        self.guard = WebhookGuard(kit, discovery)
        self.arbitrator = Arbitrator(kit, self.workloads, self.budgets, self._config, self.guard)
        self._snapshots = SnapshotBuilder(kit, self.workloads, self._config)
        self._writer = Writer(kit)
        self._flow = FlowControl(self._config.jobs)
        self._gate = Gate(lambda: self._config.jobs().max_concurrent_reconciles)
        self._metrics = JobMetrics(kit, self._jobs)
        # Jobs that wait for a budget, by the namespace of their pod. A dict and not a set: the order must not depend on hashes.
        self._held: dict[str, dict[Key, None]] = {}
        self._clock = asyncio.get_running_loop().time
        # By the uid of a job: when something was last written for it.
        self._written: dict[str, float] = {}
        self._retries = Retries()

    @classmethod
    def start(cls, kit: Kit) -> Runs:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        self.follow(kit)
        return Together(kit.work(self, queue, MOST_CONCURRENT, of=self._jobs), self.helpers)

    @property
    def helpers(self) -> Runs:
        """What runs beside the looks at single jobs."""
        return Together(self.arbitrator.work, self.workloads.scales.work, self.budgets, self.guard)

    @property
    def kept(self) -> int:
        """How many things are kept in mind of jobs: nothing of those that are gone."""
        return len(self._written) + len(self._retries) + self._flow.turns + sum(len(keys) for keys in self._held.values())

    def follow(self, kit: Kit) -> None:
        enqueue(self._jobs, self._queue)
        self._jobs.subscribe(self._job_changed)
        kit.caches.of(PODS).subscribe(self._pod_changed)
        enqueue(kit.caches.of(RESERVATIONS), self._queue, lambda one: self._jobs.keys_by(BY_REFERENCE, one.key.name))
        for resource in (REPLICA_SETS, STATEFUL_SETS, INSTANCES):
            enqueue(kit.caches.of(resource), self._queue, lambda one: self._jobs.keys_by(BY_CONTROLLER_REF, one.uid))
        enqueue(kit.caches.of(MIGRATIONS), self._queue, self._jobs_of_migration)
        self.budgets.subscribe(self._budget_changed)
        self._config.subscribe(self._wake_all, JOBS_FILE)

    def _pod_changed(self, change: Change[Pod]) -> None:
        """Those that move it, those whose reservation it took, and those that wait for one like it. These may be many: what a pod
        says of itself while it is where it was tells them nothing."""
        keys = dict.fromkeys(self._jobs.keys_by(BY_POD, f"{change.key.namespace}/{change.key.name}"))
        elsewhere = _place(change.old) != _place(change.new)
        for state in (change.old, change.new):
            keys |= dict.fromkeys(self._jobs_beside(state, elsewhere)) if state is not None else {}
        for key in keys:
            self._queue.add(key)

    def _jobs_beside(self, pod: Stored[Pod], elsewhere: bool) -> Iterable[Key]:
        for name in _taken(pod):
            yield from self._jobs.keys_by(BY_REFERENCE, name)
        owner = pod.controller
        if owner is not None and (elsewhere or owner.kind == INSTANCES.kind):
            yield from self._jobs.keys_by(BY_CONTROLLER_REF, owner.uid)

    def _jobs_of_migration(self, stored: Stored[Any]) -> Iterable[Key]:
        instance = self._instances.stored(Key(stored.key.namespace, stored.view.spec.vmi_name))
        return self._jobs.keys_by(BY_CONTROLLER_REF, instance.uid) if instance is not None else ()

    def _budget_changed(self, budget: BudgetKey) -> None:
        """Those that wait for one of its namespace: to look for the pods of each budget that changes would cost more."""
        for key in self._held.pop(budget[1], ()):
            stored = self._jobs.stored(key)
            if stored is not None:
                self._retries.changed(stored.uid)
            self._queue.add(key)

    def _wake_all(self) -> None:
        self._gate.changed()
        for key in self._jobs.keys():  # noqa: SIM118 - a cache, not a dict
            self._queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        async with self._gate:
            stored = self._jobs.stored(key)
            if stored is None:
                return DONE
            return await self._look(stored)

    async def _look(self, stored: Stored[PodMigrationJob]) -> Result:
        snapshot = await self._snapshots.build(stored)
        plan = plan_job(snapshot, self._world.now())
        if plan.disrupts:
            plan = await self._checked(stored, snapshot, plan)
        else:
            # Turns are not saved up: who is paused, or loses its room, right then waits for another one.
            self._flow.done(stored.uid)
        if undoes(plan) and has_begun(snapshot.job):
            # An eviction may have been answered to nobody: what rests on the pod being there is decided by how it is now.
            snapshot, plan = await self._confirmed(stored, snapshot, plan)
        if plan.informs and (rest := self._rest(stored.uid)) > 0:
            # Steps follow each other within moments: they are told together.
            return Later(rest if plan.next_look is None else min(rest, plan.next_look))
        try:
            if not is_over(snapshot.job):
                self._written[stored.uid] = self._clock()
            await self._writer.carry_out(stored, plan)
        except NotMade as error:
            told = str(error)
            return await self._refuse(stored, snapshot, lambda now: reservation_refused(now, told, self._world.now()))
        except NotEvicted as refusal:
            return await self._eviction_refused(stored, snapshot, refusal.error)
        self._after(stored, plan)
        return Later(max(plan.next_look, 0.0)) if plan.next_look is not None else DONE

    def _rest(self, uid: str) -> float:
        return self._written.setdefault(uid, self._clock()) + TOLD_EVERY - self._clock()

    async def _checked(self, stored: Stored[PodMigrationJob], snapshot: JobSnapshot, plan: JobPlan) -> JobPlan:
        """Everything is looked at again right before, and there is a pace for all of them together."""
        rest = self._retries.wait(stored.uid)
        if rest > 0:
            return JobPlan(next_look=rest if plan.next_look is None else min(rest, plan.next_look))
        held = await self.arbitrator.look_again(stored)
        if held is not None:
            # Its turn is over: those that were held together are not to go together.
            self._flow.done(stored.uid)
            if held.reason == reasons.WAITING_FOR_DISRUPTION_BUDGET:
                self._held.setdefault(snapshot.job.spec.pod_ref.namespace, {})[stored.key] = None
            return held_plan(snapshot, held, self._world.now())
        wait = self._flow.wait(stored.uid) if plan.paced else 0.0
        if wait <= 0:
            return plan
        if wait < WORTH_TELLING:
            return JobPlan(next_look=wait)
        qps = self._config.jobs().evict_qps
        said = f"its turn is in {wait:.0f} s: evictQPS allows {qps:g} evictions a second"
        return waiting_plan(snapshot, reasons.WAITING_FOR_FLOW_CONTROL, said, wait, self._world.now())

    async def _confirmed(
        self, stored: Stored[PodMigrationJob], snapshot: JobSnapshot, plan: JobPlan
    ) -> tuple[JobSnapshot, JobPlan]:
        live = await self._snapshots.build(stored, live=True)
        if (live.pod is None) == (snapshot.pod is None) and (live.pod is None or not live.pod.being_deleted):
            return snapshot, plan
        return live, plan_job(live, self._world.now())

    async def _eviction_refused(self, stored: Stored[PodMigrationJob], snapshot: JobSnapshot, error: ApiStatusError) -> Result:
        """A budget, or whoever else has a say in it, does not let the pod go. It is tried until the job's time is over."""
        self._flow.done(stored.uid)
        retry = self._retries.refused(stored.uid, error.retry_after)
        budget = isinstance(error, TooManyRequests)
        if budget:
            self._held.setdefault(snapshot.job.spec.pod_ref.namespace, {})[stored.key] = None
        final = isinstance(error, ServerFailed) and SEVERAL_BUDGETS in str(error)
        self._metrics.refused(budget)
        told = str(error)
        return await self._refuse(
            stored,
            snapshot,
            lambda now: eviction_refused(now, told, self._world.now(), budget=budget, final=final, retry=retry),
        )

    async def _refuse(
        self, stored: Stored[PodMigrationJob], snapshot: JobSnapshot, plan_for: Callable[[JobSnapshot], JobPlan]
    ) -> Result:
        """Says what was refused, of the job as it is now: what was said before the try stays."""
        current = self._jobs.stored(stored.key)
        if current is None or current.uid != stored.uid:
            return DONE
        plan = plan_for(msgspec.structs.replace(snapshot, job=current.view))
        await self._writer.show(current, plan)
        self._after_status(stored.uid, plan)
        return Later(max(plan.next_look, 0.0)) if plan.next_look is not None else DONE

    def _after(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> None:
        if plan.paced:
            self._flow.done(stored.uid)
            self._retries.forget(stored.uid)
            self._metrics.disrupted(plan)
        self._after_status(stored.uid, plan)

    def _after_status(self, uid: str, plan: JobPlan) -> None:
        if plan.status is not None and plan.status["phase"] in FINISHED:
            self._forget(uid)
            self._metrics.finished(plan.status["phase"], plan.status.get("reason", ""))

    def _job_changed(self, change: Change[PodMigrationJob]) -> None:
        """One that is gone, or whose name another one has by now, may have gone before its end."""
        if change.old is None or (change.new is not None and change.new.uid == change.old.uid):
            return
        self._forget(change.old.uid)
        before = view_of(change.old)
        held = self._held.get(before.spec.pod_ref.namespace) if before is not None else None
        if before is not None and held is not None:
            held.pop(change.key, None)
            if not held:
                del self._held[before.spec.pod_ref.namespace]

    def _forget(self, uid: str) -> None:
        self._written.pop(uid, None)
        self._flow.done(uid)
        self._retries.forget(uid)


def _place(pod: Stored[Pod] | None) -> tuple[str, str, bool] | None:
    return (pod.uid, pod.node, pod.deleting) if pod is not None else None


def _taken(pod: Stored[Pod]) -> tuple[str, ...]:
    """One that cannot be read took nothing that anybody knows of; the cache has counted it and said so."""
    try:
        return taken_reservations(pod)
    except Unreadable:
        return ()
