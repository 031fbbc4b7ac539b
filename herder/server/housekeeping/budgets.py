"""The status of disruption budgets: how many pods there should be, how many are well, how many may be away.

Level-triggered: whatever changes (a pod, the budget, a controller's scale), the budgets that it may concern are counted afresh.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from herder.api.int_or_percent import scaled_value
from herder.server.budgets import BUDGETS, PODS
from herder.server.conditions import is_ready, set_disruption_allowed
from herder.server.engine import Engine
from herder.server.housekeeping.controllers import ControllersUnclear, expected_scale
from herder.server.housekeeping.worker import Worker
from herder.server.status import ApiError
from herder.server.store import Change, Record
from herder.server.writes import Intent

Document = dict[str, Any]
# An eviction that was allowed should be seen as a deletion within this time; else it is taken to have failed.
DELETION_SECONDS = 120.0
STATUS = Intent("disruption-controller", False, "status")


class Budgets:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("budgets", self._reconcile)
        # When a budget is looked at again because time alone changes it.
        self._rechecks: dict[str, float] = {}
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
        for record in (change.record, change.previous):
            for key in self._engine.budgets.of_pod(record) if record is not None else ():
                self.worker.add(key)
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
        try:
            expected, desired = self._wanted(budget.get("spec") or {}, pods)
        except (ControllersUnclear, ValueError) as error:
            # Better to allow nothing than too much.
            budget["status"] = {**before, "disruptionsAllowed": 0}
            set_disruption_allowed(budget, now, str(error))
            return budget
        disrupted = self._disrupted(key, pods, before.get("disruptedPods") or {}, now)
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

    def _wanted(self, spec: Document, pods: list[Record]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must be well."""
        if spec.get("maxUnavailable") is not None:
            expected = expected_scale(self._engine, pods)
            return expected, max(expected - scaled_value(spec["maxUnavailable"], expected, True), 0)
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = expected_scale(self._engine, pods)
            return expected, scaled_value(least, expected, True)
        return (len(pods), least) if least is not None else (0, 0)

    def _disrupted(self, key: str, pods: list[Record], before: Document, now: float) -> Document:
        """The evictions that were allowed and not yet seen as deletions; those that never came are forgotten after a while."""
        waiting = {pod.name: before[pod.name] for pod in pods if pod.name in before and not pod.terminating}
        ends = {name: datetime.fromisoformat(since).timestamp() + DELETION_SECONDS for name, since in waiting.items()}
        still = {name: since for name, since in waiting.items() if ends[name] > now}
        if still:
            self._look_again(key, min(ends[name] for name in still) - now)
        return still

    def _look_again(self, key: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + max(seconds, 0.0)
        if key in self._rechecks and self._rechecks[key] <= at:
            return
        self._rechecks[key] = at

        def look() -> None:
            self._rechecks.pop(key, None)
            self.worker.add(key)

        loop.call_at(at, look)
