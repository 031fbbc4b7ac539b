"""A pod that was said to go (by an eviction, a preemption) and did not: after a while that is no longer said of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from herder.api.world import timestamp
from herder.server.budgets import PODS
from herder.server.conditions import condition_of
from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.writes import Intent

Document = dict[str, Any]
STALE_SECONDS = 120.0
TARGET = "DisruptionTarget"
STATUS = Intent("disruption-controller", False, "status")


class StaleDisruptions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("disruptions", self._reconcile)
        for record in engine.store.scan(PODS):
            self._look(record)
        engine.store.listen(PODS, self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.kind != DELETED:
            self._look(change.record)

    def _look(self, record: Record) -> None:
        # Pods change all the time, and hardly one of them says this: its bytes are looked at before it is read.
        if TARGET.encode() in record.raw and not record.terminating:
            self.worker.add(record.key)

    async def _reconcile(self, key: str) -> None:
        record = self._engine.store.latest(PODS, key)
        since = _said_since(record.document()) if record is not None and not record.terminating else None
        if since is None:
            return
        left = since + STALE_SECONDS - self._engine.world.now()
        if left > 0:
            self.worker.add_later(key, left)
            return
        try:
            await self._engine.writes.update(self._engine.served("", "v1", PODS), key, self._unsaid, STATUS)
        except ApiError as error:
            if error.code != 404:
                raise

    def _unsaid(self, pod: Document) -> Document:
        condition = {
            "type": TARGET,
            "status": "False",
            "observedGeneration": pod["metadata"].get("generation", 0),
            "lastTransitionTime": timestamp(self._engine.world.now()),
        }
        conditions = pod["status"]["conditions"]
        pod["status"]["conditions"] = [condition if one.get("type") == TARGET else one for one in conditions]
        return pod


def _said_since(pod: Document) -> float | None:
    """None where it is not said, or not for us to unsay: a kubelet takes as long as it takes, and what has ended stays as it is."""
    status = pod.get("status") or {}
    condition = condition_of(status, TARGET)
    if condition is None or condition.get("status") != "True" or condition.get("reason") == "TerminationByKubelet":
        return None
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    told = condition.get("lastTransitionTime")
    return datetime.fromisoformat(told).timestamp() if told else 0.0
