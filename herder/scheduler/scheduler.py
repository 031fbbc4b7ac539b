"""Places pods that ask for us: asks the rules about all nodes, assumes the choice, and binds while the next is decided.

One decision stands on the one before, so they are taken one at a time; writes go out beside them. Between asking the rules and
assuming or parking nothing is waited for: no event can come in between and be missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from herder.api import reasons
from herder.api.core import Pod
from herder.api.storage import SELECTED_NODE
from herder.kube.cache import Change, Stored, view_of
from herder.kube.enqueue import controlled_by
from herder.kube.errors import KubeError
from herder.kube.failures import is_ordinary, said
from herder.kube.kit import Kit
from herder.kube.resources import INSTANCES, PODS, Key
from herder.rules.placement import OF_THE_NODE, RULES, Decision, Event, Needs, Rule, What, decide, message, needs_of, still_fits
from herder.rules.placement.storage import is_bound
from herder.scheduler.hands import Hands
from herder.scheduler.line import Line
from herder.scheduler.metrics import scheduler_metrics_of
from herder.scheduler.view import FINISHED, View
from herder.scheduler.waiting import Waiter, Waiting

log = structlog.get_logger()
# Writes that are on their way at once. More would only wait at the API server.
MOST_WRITES = 64
# Decisions after which others get their turn, when nothing has to be waited for.
IN_A_ROW = 4


class Scheduler:
    name = "scheduler"

    def __init__(self, kit: Kit, names: tuple[str, ...], rules: tuple[Rule, ...] = RULES) -> None:
        self._names = names
        self._rules = rules
        self._hands = Hands(kit)
        self._metrics = scheduler_metrics_of(kit.registry)
        # Who leads now counts them.
        kit.at_end(lambda: self._metrics.waiting.set(0))
        self._line = Line()
        self._waiting = Waiting()
        self._slots = asyncio.Semaphore(MOST_WRITES)
        self._tasks: dict[asyncio.Task[None], None] = {}
        # Pods that hold their room until their volumes are made, and where.
        self._reserved: dict[Key, str] = {}
        self._pods = kit.caches.of(PODS)
        self._instances = kit.caches.of(INSTANCES)
        # Before our own subscription: when we hear of a pod, the snapshot shows it.
        self._view = View(kit.caches, self._happened)
        self._pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        try:
            number = 0
            while True:
                await self._slots.acquire()
                key = await self._line.get()
                self._try(key)
                number += 1
                if number % IN_A_ROW == 0:
                    await asyncio.sleep(0)
        finally:
            for task in tuple(self._tasks):
                task.cancel()

    # What comes in.

    def _pod_changed(self, change: Change[Pod]) -> None:
        key, pod = change.key, view_of(change.new)
        if pod is None or not self._is_ours(pod):
            self._line.forget(key)
            self._waiting.remove(key)
            self._reserved.pop(key, None)
            self._count_waiting()
        elif key in self._view.assumed and key not in self._waiting:
            return
        elif (waiter := self._waiting.get(key)) is None:
            if key not in self._line:
                self._line.add_later(key, *_rank(pod))
        elif needs_of(pod) != waiter.needs:
            self._waiting.remove(key)
            self._line.add(key, *_rank(pod))

    def _happened(self, event: Event) -> None:
        if not len(self._waiting):
            return
        woken = self._waiting.woken_by(event, self._view.snapshot)
        if event.what is What.NODE_WENT:
            # No volume will be made there any more.
            lost = [key for key, node in self._reserved.items() if node == event.node]
            woken += [waiter for key in lost if (waiter := self._waiting.remove(key)) is not None]
        for waiter in woken:
            pod = view_of(self._pods.stored(waiter.key))
            if pod is not None:
                self._line.add_later(waiter.key, *_rank(pod))
        self._count_waiting()

    def _is_ours(self, pod: Pod) -> bool:
        spec = pod.spec
        waits = not spec.node_name and not spec.scheduling_gates and not pod.being_deleted and pod.status.phase not in FINISHED
        return waits and spec.scheduler_name in self._names

    def _is_wanted(self, stored: Stored[Pod]) -> bool:
        """A guest's pod whose instance is gone must not run: there may be another instance by now. It is about to be removed."""
        owner = stored.controller
        key = next(iter(controlled_by(INSTANCES)(stored)), None)
        if key is None or owner is None:
            return True
        instance = self._instances.stored(key)
        return instance is not None and instance.uid == owner.uid and not instance.deleting

    # One pod.

    def _try(self, key: Key) -> None:
        """Takes the slot of a write, and gives it back when there is nothing to write."""
        stored = self._pods.stored(key)
        pod = view_of(stored)
        if stored is None or pod is None or not self._is_ours(pod):
            self._slots.release()
            return
        if not self._is_wanted(stored):
            # Made by a request that was late; or we know of the pod before we know of its instance.
            self._again(key, "error")
            self._slots.release()
            return
        try:
            self._place(stored, needs_of(pod))
        except Exception as error:
            # A mistake of ours must not keep all other pods from their nodes.
            log.error("a pod could not be placed, will be tried again", key=str(key), exc_info=error)
            self._again(key, "error")
            self._write(self._hands.say_why(stored, said(error)[1], reasons.SCHEDULER_ERROR))

    def _place(self, stored: Stored[Pod], needs: Needs) -> None:
        self._view.undo(stored.key)
        self._reserved.pop(stored.key, None)
        with self._metrics.deciding.time():
            decision = decide(needs, self._view.snapshot, self._rules)
        if not decision.node:
            self._park(stored, needs, decision)
        elif self._unbound_claims(needs):
            self._reserve(stored, needs, decision)
        else:
            self._view.assume(stored.key, needs, decision.node)
            self._write(self._bind(stored, needs, decision.node))

    def _park(self, stored: Stored[Pod], needs: Needs, decision: Decision) -> None:
        self._metrics.attempts["unschedulable"].inc()
        self._line.failed(stored.key)
        waiter = Waiter(stored.key, needs, decision.rules())
        self._wait(waiter, self._hands.say_why(stored, message(needs, decision, self._view.snapshot)))

    def _reserve(self, stored: Stored[Pod], needs: Needs, decision: Decision) -> None:
        """Its volumes are made where it goes: it holds its room there until they are."""
        self._view.assume(stored.key, needs, decision.node)
        self._reserved[stored.key] = decision.node
        waiter = Waiter(stored.key, needs, tuple(rule for rule in self._rules if rule.name == "volumes"))
        self._wait(waiter, self._choose(needs, decision.node))

    def _wait(self, waiter: Waiter, said: Coroutine[Any, Any, None]) -> None:
        """It waits from now on, so that no event is missed; but not where nobody has heard of it in the end: nothing would ever
        come of that."""
        self._waiting.add(waiter)
        self._count_waiting()
        self._write(self._say(waiter, said))

    async def _say(self, waiter: Waiter, said: Coroutine[Any, Any, None]) -> None:
        try:
            await said
        except Exception as error:
            _report("what a pod waits for could not be written, will be tried again", waiter.key, error)
            if self._waiting.get(waiter.key) is waiter:
                self._waiting.remove(waiter.key)
                self._count_waiting()
                self._view.undo(waiter.key)
                self._again(waiter.key, "error")

    async def _choose(self, needs: Needs, node: str) -> None:
        for name in self._unbound_claims(needs):
            claim = self._view.snapshot.storage.claims.get((needs.namespace, name))
            if claim is not None and claim.annotations.get(SELECTED_NODE) != node:
                await self._hands.choose_node(Key(needs.namespace, name), claim.uid, node)

    def _unbound_claims(self, needs: Needs) -> list[str]:
        claims = ((one.name, self._view.snapshot.storage.claims.get((needs.namespace, one.name))) for one in needs.claims)
        return [name for name, claim in claims if claim is not None and not is_bound(claim)]

    async def _bind(self, stored: Stored[Pod], needs: Needs, node: str) -> None:
        key = stored.key
        bound = False
        refused: KubeError | None = None
        try:
            if still_fits(needs, node, self._view.snapshot, OF_THE_NODE):
                bound = await self._hands.bind(stored, node)
        except Exception as error:
            refused = error if isinstance(error, KubeError) else None
            _report("a pod could not be bound, will be tried again", key, error)
        finally:
            if not bound and self._view.assumed.get(key) is needs:
                self._view.undo(key)
        if bound:
            self._metrics.attempts["scheduled"].inc()
            self._line.forget(key)
        else:
            self._again(key, "error")
        if refused is not None and not is_ordinary(refused):
            await self._hands.say_why(stored, f"binding to node {node}: {said(refused)[1]}", reasons.SCHEDULER_ERROR)

    def _again(self, key: Key, result: str) -> None:
        self._metrics.attempts[result].inc()
        self._line.failed(key)
        pod = view_of(self._pods.stored(key))
        if pod is not None and self._is_ours(pod):
            self._line.add_later(key, *_rank(pod))

    # Writes, beside the decisions.

    def _write(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks[task] = None
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._slots.release()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            passing = isinstance(error, KubeError) and error.passing
            log.log(20 if passing else 40, "the scheduler could not write", error=str(error), exc_info=None if passing else error)

    def _count_waiting(self) -> None:
        self._metrics.waiting.set(len(self._waiting))


def _report(what: str, key: Key, error: Exception) -> None:
    """What passes is no mistake of ours."""
    ours = not isinstance(error, KubeError)
    log.log(40 if ours else 20, what, key=str(key), error=str(error), exc_info=error if ours else None)


def _rank(pod: Pod) -> tuple[int, float]:
    created = pod.metadata.creation_timestamp
    return (pod.spec.priority or 0, created.timestamp() if created is not None else 0.0)
