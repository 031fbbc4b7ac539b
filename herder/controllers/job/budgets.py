"""The budgets of a pod and the pods of a budget, kept ready from caches.

PodDisruptionBudgets always; Kruise's PodUnavailableBudgets where discovery shows their CRD, which may come and go while we run.
What is not known yet is said, and never taken for none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import structlog

from herder.api.core import Pod, PodDisruptionBudget, PodUnavailableBudget
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Cache, Change, Stored, view_of
from herder.kube.discovery import BELIEVED, Discovery
from herder.kube.errors import KubeError, Unreadable
from herder.kube.kit import Kit
from herder.kube.resources import BUDGETS, PODS, UNAVAILABLE_BUDGETS, Key
from herder.rules.jobs.budgets import (
    DISRUPTION,
    UNAVAILABILITY,
    Budget,
    PodBudgets,
    Target,
    read_disruption_budget,
    read_unavailable_budget,
    recounted,
    selector_of,
    target_of,
    unavailable_budget_selector,
)
from herder.rules.jobs.workload import Workload
from herder.rules.matching.selector_index import SelectorIndex
from herder.rules.workloads.pods import is_ready

log = structlog.get_logger()
# Budgets that would have to be looked at for one pod. One that has more cannot be evicted anyway: whoever makes thousands of
# them in a namespace holds up its own pods, and nobody else's.
MOST_LOOKED_AT = 200
# Of budgets: the kind, the namespace and the name.
BudgetKey = tuple[str, str, str]
Answered = tuple[Stored[Pod], Workload | None, PodBudgets]
_NONE = PodBudgets()
_NOBODY: dict[Key, Answered] = {}


class Budgets:
    def __init__(self, kit: Kit, discovery: Discovery, workloads: Workloads) -> None:
        self._caches = kit.caches
        self._discovery = discovery
        self._workloads = workloads
        self._pods: Cache[Pod] = kit.caches.of(PODS)
        self._cache_of: dict[str, Cache[Any]] = {DISRUPTION: kit.caches.of(BUDGETS)}
        self._index: SelectorIndex[BudgetKey, Key] = SelectorIndex()
        self._targets: dict[tuple[str, Target], dict[BudgetKey, None]] = {}
        self._target_of: dict[BudgetKey, tuple[str, Target]] = {}
        # By namespace: budgets that are there and cannot be read. Whom they are about nobody knows.
        self._unreadable: dict[str, dict[BudgetKey, None]] = {}
        # What was answered about a pod in this state: as long as no budget of its namespace changes, it is so.
        self._answered: dict[str, dict[Key, Answered]] = {}
        # What each allows, with the state that it was read from.
        self._read: dict[BudgetKey, tuple[Stored[Any], Budget | None]] = {}
        self._handlers: list[Callable[[BudgetKey], None]] = []
        # Once the server has said whether there are PodUnavailableBudgets, or that it cannot.
        self.looked = asyncio.Event()
        # Whether there are PodUnavailableBudgets at all: not known before the server was asked.
        self._kruise_problem = "whether there are PodUnavailableBudgets is not known yet"
        self._has_kruise = False
        self._kruise_version = ""
        self._leave_kruise: Callable[[], None] = lambda: None
        self._pods.subscribe(self._pod_changed)
        self._cache_of[DISRUPTION].subscribe(partial(self._budget_changed, DISRUPTION))

    async def run(self) -> None:
        """Looks again and again whether the CRD of PodUnavailableBudgets is there."""
        while True:
            await self.look_for_kruise()
            await asyncio.sleep(BELIEVED)

    def subscribe(self, handler: Callable[[BudgetKey], None]) -> None:
        """Called with each budget that came, changed or went, when it is already so."""
        self._handlers.append(handler)

    # --- asking ------------------------------------------------------------------------------------------------------------------

    def of(self, pod: Stored[Pod], workload: Workload | None) -> PodBudgets:
        """`workload`: that of the pod, as `Workloads` says."""
        known = self._answered.get(pod.key.namespace, _NOBODY).get(pod.key)
        if known is not None and known[0] is pod and known[1] is workload:
            return known[2]
        problem = self._problem(pod, workload)
        if problem:
            return PodBudgets((), problem)
        answer = self._find(pod, workload)
        self._answered.setdefault(pod.key.namespace, {})[pod.key] = pod, workload, answer
        return answer

    def recounted(self, budgets: PodBudgets) -> PodBudgets:
        """With what the pods allow that are there and healthy as the cache has them."""
        found = (recounted(one, self._healthy(one)) if one.desired is not None else one for one in budgets.budgets)
        return msgspec.structs.replace(budgets, budgets=tuple(found))

    def _healthy(self, budget: Budget) -> int:
        stored = (self._pods.stored(key) for key in self.pods_of((budget.kind, budget.namespace, budget.name)))
        views = (view_of(one) for one in stored if one is not None and not one.deleting and one.key.name not in budget.going)
        return sum(1 for view in views if view is not None and is_ready(view))

    def pods_of(self, key: BudgetKey) -> list[Key]:
        """The pods that a budget is about."""
        target = self._target_of.get(key)
        return self._workloads.pods_of_target(*target) if target is not None else self._index.objects_of(key)

    def _find(self, pod: Stored[Pod], workload: Workload | None) -> PodBudgets:
        keys = [*self._index.selectors_of(pod.key.namespace, pod.labels), *self._targeting(workload)]
        if not keys:
            return _NONE
        return PodBudgets(tuple(budget for key in keys if (budget := self._budget(key)) is not None))

    def _problem(self, pod: Stored[Pod], workload: Workload | None) -> str:
        namespace = pod.key.namespace
        if self._kruise_problem:
            return self._kruise_problem
        if self._has_kruise and not self._cache_of[UNAVAILABILITY].has_synced:
            return "PodUnavailableBudgets have not been read yet"
        for kind, _, name in self._unreadable.get(namespace, ()):
            if kind == UNAVAILABILITY and not self._has_kruise:
                continue
            return f"{kind} {name} of namespace {namespace} cannot be read: whom it is about is not known"
        crowd = self._index.crowd(namespace, pod.labels) + len(self._targeting(workload))
        if crowd > MOST_LOOKED_AT:
            return f"{crowd} budgets of namespace {namespace} may be about this pod, and at most {MOST_LOOKED_AT} are looked at"
        return ""

    def _targeting(self, workload: Workload | None) -> list[BudgetKey]:
        """By the workload's name, or by that of the ReplicaSet or whoever else keeps the pod directly."""
        if workload is None or not self._has_kruise:
            return []
        group, kind = workload.group_kind
        direct_group, direct_kind = workload.controller.group_kind
        names = dict.fromkeys((Target(group, kind, workload.name), Target(direct_group, direct_kind, workload.controller.name)))
        return [key for target in names for key in self._targets.get((workload.namespace, target), ())]

    def _budget(self, key: BudgetKey) -> Budget | None:
        """None for one that does not count: it has gone, or protects nobody."""
        kind, namespace, name = key
        if kind == UNAVAILABILITY and not self._has_kruise:
            return None
        stored = self._cache_of[kind].stored(Key(namespace, name))
        known = self._read.get(key)
        if stored is None or known is None or known[0] is not stored:
            view = view_of(stored)
            if stored is None or view is None:
                return None
            read = read_disruption_budget if kind == DISRUPTION else read_unavailable_budget
            known = self._read[key] = stored, read(view)
        return known[1]

    # --- learning ----------------------------------------------------------------------------------------------------------------

    async def look_for_kruise(self) -> None:
        await self._find_kruise()
        self.looked.set()

    async def _find_kruise(self) -> None:
        kind = UNAVAILABLE_BUDGETS
        try:
            served = await self._discovery.find(kind.group, kind.version, kind.kind)
        except KubeError as error:
            # Once it is known, it stays as it was until the server says otherwise.
            if self._kruise_problem:
                self._kruise_problem = f"whether there are PodUnavailableBudgets cannot be found out: {error}"
            return
        if served is not None and served.resource.version != self._kruise_version:
            self._follow_kruise(served.resource.version)
        if self._has_kruise != (served is not None):
            self._answered.clear()
        self._has_kruise, self._kruise_problem = served is not None, ""

    def _follow_kruise(self, version: str) -> None:
        """In a version that is served: an upgrade of Kruise may end the one of before."""
        self._leave_kruise()
        self._answered.clear()
        before = self._cache_of.get(UNAVAILABILITY)
        for key in before.keys() if before is not None else ():
            self._budget_changed(UNAVAILABILITY, Change(key, None, None))
        self._kruise_version = version
        self._cache_of[UNAVAILABILITY] = cache = self._caches.of(msgspec.structs.replace(UNAVAILABLE_BUDGETS, version=version))
        self._leave_kruise = cache.subscribe(partial(self._budget_changed, UNAVAILABILITY))
        log.info("there are PodUnavailableBudgets, and they are obeyed", version=version)

    def _pod_changed(self, change: Change[Pod]) -> None:
        answered = self._answered.get(change.key.namespace)
        if answered is not None:
            answered.pop(change.key, None)
        if change.new is None:
            self._index.remove_labels(change.key)
        else:
            self._index.set_labels(change.key, change.key.namespace, change.new.labels)

    def _budget_changed(self, kind: str, change: Change[Any]) -> None:
        key: BudgetKey = (kind, change.key.namespace, change.key.name)
        self._forget(key)
        self._answered.pop(change.key.namespace, None)
        if change.new is None:
            self._index.remove_selector(key)
            self._read.pop(key, None)
        else:
            self._learn(key, change.new)
        for handler in self._handlers:
            handler(key)

    def _learn(self, key: BudgetKey, stored: Stored[PodDisruptionBudget | PodUnavailableBudget]) -> None:
        namespace = stored.key.namespace
        try:
            budget = stored.view
        except Unreadable:
            self._index.remove_selector(key)
            self._unreadable.setdefault(namespace, {})[key] = None
            return
        if isinstance(budget, PodDisruptionBudget):
            self._index.set_selector(key, namespace, selector_of(budget.spec.selector))
            return
        self._index.set_selector(key, namespace, unavailable_budget_selector(budget))
        target = target_of(budget)
        if target is not None:
            self._targets.setdefault((namespace, target), {})[key] = None
            self._target_of[key] = (namespace, target)

    def _forget(self, key: BudgetKey) -> None:
        """All but the selector, which mostly stays the same."""
        for known, place in ((self._unreadable, key[1]), (self._targets, self._target_of.pop(key, None))):
            _take_away(known, place, key)


def _take_away(known: dict[Any, dict[BudgetKey, None]], place: Any, key: BudgetKey) -> None:
    keys = known.get(place)
    if keys is not None:
        keys.pop(key, None)
        if not keys:
            del known[place]
