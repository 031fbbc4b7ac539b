"""Runs HorizontalPodAutoscalers: every 15 seconds each looks at what the pods of its target use, and scales it.

As in Kubernetes it writes the number through the scale subresource and owns nothing else of its target, and what it has recommended
lately is in memory alone.
"""

from __future__ import annotations

import asyncio

import msgspec

from herder.api.core import HorizontalPodAutoscaler
from herder.controllers.autoscaling.pod_metrics import usage_of
from herder.controllers.autoscaling.target_pods import TargetPods
from herder.controllers.autoscaling.targets import FoundScale, NotScalable, Targets
from herder.controllers.hands import Hands
from herder.kube.cache import Change, Stored, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import AUTOSCALERS, PODS, Key
from herder.rules.autoscaling import AutoscalerPlan, AutoscalerSnapshot, History, Target, failed_rescale, plan_autoscaler

WORKERS = 5
# A new autoscaler often comes together with its target, which has to say first which its pods are.
FIRST_LOOK = 1.0


class _Remembered(msgspec.Struct, frozen=True):
    """Of the autoscaler with this uid: another one of its name begins anew."""

    uid: str
    history: History
    # When it is looked at next: no sooner, however often it is changed.
    due: float = 0.0


class Autoscalers:
    name = "autoscalers"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._client = kit.client
        self._hands = Hands(kit.client, kit.recorder)
        self._autoscalers = kit.caches.of(AUTOSCALERS)
        self._targets = Targets(kit.client)
        self._pods = TargetPods(kit.caches.of(PODS))
        self._clock = asyncio.get_running_loop().time
        self._remembered: dict[Key, _Remembered] = {}

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        self._autoscalers.subscribe(lambda change: self._changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._autoscalers)

    def _changed(self, change: Change[HorizontalPodAutoscaler], queue: Queue) -> None:
        """Its status is written by us, and is nothing to look at."""
        if _wish(change.old) != _wish(change.new):
            queue.add_after(change.key, FIRST_LOOK if change.old is None else 0.0)

    async def reconcile(self, key: Key) -> Result:
        stored = self._autoscalers.stored(key)
        if stored is None or stored.deleting:
            self._remembered.pop(key, None)
            self._pods.forget(key)
            return DONE
        known = self._remembered.get(key)
        if known is None or known.uid != stored.uid:
            known = _Remembered(stored.uid, History())
        wait = known.due - self._clock()
        if wait > 0:
            return Later(wait)
        plan = await self._carry_out(stored, known.history)
        self._remembered[key] = _Remembered(stored.uid, plan.history, self._clock() + plan.next_look)
        self._hands.tell(stored.view, plan.events)
        await self._hands.show(self._autoscalers, stored, plan.status)
        return Later(plan.next_look)

    async def _carry_out(self, stored: Stored[HorizontalPodAutoscaler], history: History) -> AutoscalerPlan:
        """What was done, or why it could not be."""
        view = stored.view
        try:
            found = await self._targets.find(stored.key.namespace, view.spec.scale_target_ref)
        except NotScalable as error:
            self._pods.forget(stored.key)
            return plan_autoscaler(AutoscalerSnapshot(view, str(error)), history, self._world.now())
        snapshot = await self._snapshot(stored, found)
        now = self._world.now()
        plan = plan_autoscaler(snapshot, history, now)
        if plan.rescale is None:
            return plan
        try:
            await self._targets.scale(found, plan.rescale.replicas)
        except NotScalable as error:
            return failed_rescale(snapshot, history, plan, str(error), now)
        return plan

    async def _snapshot(self, stored: Stored[HorizontalPodAutoscaler], found: FoundScale) -> AutoscalerSnapshot:
        selector = found.scale.status.selector
        # First what they use: pods that have come since count as those of which nothing is known.
        usage = await usage_of(self._client, stored.key.namespace, selector) if selector else {}
        target = Target(found.scale.spec.replicas, selector)
        return AutoscalerSnapshot(stored.view, target, self._pods.of(stored.key, selector), usage)


def _wish(stored: Stored[HorizontalPodAutoscaler] | None) -> object:
    view = view_of(stored)
    return None if stored is None or view is None else (stored.uid, stored.deleting, view.spec)
