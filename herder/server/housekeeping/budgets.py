"""The status of disruption budgets: how many pods there should be, how many are well, how many may be away.

Level-triggered: whatever changes (a pod, the budget, a controller's scale), the budgets that it may concern are counted afresh.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from herder.api.int_or_percent import scaled_value
from herder.server.budgets import BUDGETS, PODS
from herder.server.conditions import is_ready, set_disruption_allowed
from herder.server.engine import Engine
from herder.server.housekeeping import budget_news
from herder.server.housekeeping.controllers import ControllersUnclear, controller_of, expected_scale
from herder.server.housekeeping.recorder import Told
from herder.server.housekeeping.worker import Worker
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.writes import Intent

Document = dict[str, Any]
# An eviction that was allowed should be seen as a deletion within this time; else it is taken to have failed.
DELETION_SECONDS = 120.0
STATUS = Intent("disruption-controller", False, "status")


class Budgets:
    def __init__(self, engine: Engine, tell: Callable[[Told], None]) -> None:
        self._engine = engine
        self._tell = tell
        self.worker = Worker[str]("budgets", self._reconcile)
        # Whether pods were well when last looked at, by revision: a budget of many pods is counted often.
        self._well: dict[str, tuple[int, bool]] = {}
        for record in engine.store.scan(BUDGETS):
            self.worker.add(record.key)
        engine.store.listen("", self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.table == BUDGETS:
            self.worker.add(change.record.key)
        elif change.table == PODS:
            self._on_pod(change)
        elif change.record.namespace:
            self._on_controller(change)

    def _on_pod(self, change: Change) -> None:
        keys = self._engine.budgets.of_pod(change.record)
        before = self._engine.budgets.of_pod(change.previous) if change.previous is not None else ()
        for key in (*keys, *before):
            self.worker.add(key)
        if len(keys) > 1 and change.kind != DELETED:
            self._tell(budget_news.several(change.record, keys))
        if self._engine.store.get(PODS, change.record.key) is None:
            self._well.pop(change.record.key, None)

    def _on_controller(self, change: Change) -> None:
        served = self._engine.registry.by_table(change.table)
        if served is not None and served.resource.scale is not None:
            for key in self._engine.budgets.in_namespace(change.record.namespace):
                self.worker.add(key)

    async def _reconcile(self, key: str) -> None:
        if self._engine.store.latest(BUDGETS, key) is None:
            return
        served = self._engine.served("policy", "v1", "poddisruptionbudgets")
        try:
            await self._engine.writes.update(served, key, lambda budget: self._counted(key, budget), STATUS)
        except ApiError as error:
            if error.code != 404:
                raise

    # --- counting ----------------------------------------------------------------------------------------------------------------

    def _counted(self, key: str, budget: Document) -> Document:
        now = self._engine.world.now()
        pods = list(self._engine.budgets.pods_of(key))
        before: Document = budget.get("status") or {}
        if not pods:
            self._tell(budget_news.no_pods(budget))
        try:
            expected, desired = self._wanted(budget, pods)
        except (ControllersUnclear, ValueError) as error:
            self._tell(budget_news.not_counted(budget, str(error)))
            # Better to allow nothing than too much.
            budget["status"] = {**before, "disruptionsAllowed": 0}
            set_disruption_allowed(budget, now, str(error))
            return budget
        disrupted = self._disrupted(key, budget, pods, now)
        healthy = sum(1 for pod in pods if not pod.terminating and pod.name not in disrupted and self._is_well(pod))
        budget["status"] = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            **({"disruptedPods": disrupted} if disrupted else {}),
            "disruptionsAllowed": max(healthy - desired, 0) if expected > 0 else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": before.get("conditions") or [],
        }
        set_disruption_allowed(budget, now)
        return budget

    def _is_well(self, pod: Record) -> bool:
        known = self._well.get(pod.key)
        if known is None or known[0] != pod.revision:
            known = self._well[pod.key] = (pod.revision, is_ready(pod.document()))
        return known[1]

    def _wanted(self, budget: Document, pods: list[Record]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must be well."""
        spec: Document = budget.get("spec") or {}
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(budget, pods)
            return expected, max(expected - scaled_value(spec["maxUnavailable"], expected, True), 0)
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._scale(budget, pods)
            return expected, scaled_value(least, expected, True)
        return (len(pods), least) if least is not None else (0, 0)

    def _scale(self, budget: Document, pods: list[Record]) -> int:
        expected = expected_scale(self._engine, pods)
        if not all(controller_of(pod) for pod in pods):
            self._tell(budget_news.unmanaged(budget))
        return expected

    def _disrupted(self, key: str, budget: Document, pods: list[Record], now: float) -> Document:
        """The evictions that were allowed and not yet seen as deletions; those that never came are forgotten after a while."""
        before = (budget.get("status") or {}).get("disruptedPods") or {}
        still: Document = {}
        for pod in pods:
            if pod.name not in before or pod.terminating:
                continue
            left = datetime.fromisoformat(before[pod.name]).timestamp() + DELETION_SECONDS - now
            if left <= 0:
                self._tell(budget_news.not_deleted(pod, budget))
                continue
            still[pod.name] = before[pod.name]
            self.worker.add_later(key, left)
        return still
