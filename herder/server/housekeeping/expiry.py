"""Events do not stay: each goes some time after it was last written, whoever still looks at it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime
from typing import Any

import structlog

from herder.server.engine import Engine
from herder.server.events import EVENTS
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record

log = structlog.get_logger()
# As kube-apiserver's --event-ttl.
KEEP_SECONDS = 3600.0
EVERY = 10.0
# At once, in one commit; then others get their turn.
SLICE = 200


class Expiry:
    """The order in which they were last written is the order in which they go: only the first needs to be looked at."""

    def __init__(self, engine: Engine, keep: float = KEEP_SECONDS) -> None:
        self._engine = engine
        self._keep = keep
        self._now = engine.world.now
        self._written: OrderedDict[str, float] = OrderedDict()
        found = [(last_written(record, self._now()), record.key) for record in engine.store.scan(EVENTS)]
        for at, key in sorted(found):
            self._written[key] = at
        engine.store.listen(EVENTS, self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.kind == DELETED:
            self._written.pop(change.record.key, None)
        else:
            self._written[change.record.key] = self._now()
            self._written.move_to_end(change.record.key)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                while await self.expire() == SLICE:
                    pass
            except ApiError as error:
                log.warning("old events stay for now", error=str(error))

    async def expire(self) -> int:
        """Removes a slice of what is due; how many that were."""
        limit = self._now() - self._keep
        due: list[Record] = []
        for key, at in self._written.items():
            if at > limit or len(due) == SLICE:
                break
            record = self._engine.store.get(EVENTS, key)
            assert record is not None, key
            due.append(record)
        served = self._engine.served("", "v1", EVENTS)
        await asyncio.gather(*(self._engine.writes.expire(served, record) for record in due))
        return len(due)


def last_written(record: Record, now: float) -> float:
    """After a restart: no object says when it was last written, so the newest of the times in it is taken for that."""
    document = record.document()
    metadata = document["metadata"]
    series: dict[str, Any] = document.get("series") or {}
    texts = [
        *(metadata.get("creationTimestamp"), document.get("lastTimestamp"), series.get("lastObservedTime")),
        *(entry.get("time") for entry in metadata.get("managedFields") or ()),
    ]
    return min(now, max((_seconds(text) for text in texts if text), default=now))


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
