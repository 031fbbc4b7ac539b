"""What the engine's own housekeeping tells about objects, as events. What was told before is counted, and not told anew.

Nobody waits for it, and nothing depends on it: what cannot be written (the namespace goes, too much is told) is let go.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec
import structlog

from herder.api.world import timestamp
from herder.server.admission import check_namespace_open
from herder.server.engine import Engine
from herder.server.events import EVENTS
from herder.server.events.limits import Buckets, Rate
from herder.server.housekeeping.worker import Worker
from herder.server.status import ApiError
from herder.server.store import Record
from herder.server.store.records import key_of
from herder.server.writes import Intent

Document = dict[str, Any]
log = structlog.get_logger()
NORMAL, WARNING = "Normal", "Warning"
# As those who look for them know it.
COMPONENT = "controllermanager"
# About one object: as client-go's own limit.
RATE = Rate(25, 1 / 300)
MOST_KNOWN = 4096
WRITE = Intent(COMPONENT)


class About(msgspec.Struct, frozen=True):
    apiVersion: str
    kind: str
    namespace: str
    name: str
    uid: str


class Told(msgspec.Struct, frozen=True):
    about: About
    type: str
    reason: str
    message: str


def about(api_version: str, kind: str, record: Record) -> About:
    return About(api_version, kind, record.namespace, record.name, record.uid)


class Recorder:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._now = engine.world.now
        self._limits = Buckets(RATE, self._now)
        # The events that were told last, by what they tell.
        self._names: OrderedDict[Told, str] = OrderedDict()
        self.worker = Worker[Told]("events", self._write)

    def tell(self, told: Told) -> None:
        if self._limits.left(told.about) >= 1:
            self._limits.take(told.about)
            self.worker.add(told)

    async def _write(self, told: Told) -> None:
        try:
            if not await self._counted(told):
                await self._made(told)
        except ApiError as error:
            log.debug("an event is not told", reason=told.reason, about=told.about.name, error=str(error))

    async def _counted(self, told: Told) -> bool:
        name = self._names.get(told)
        key = key_of(told.about.namespace, name or "")
        if name is None or self._engine.store.latest(EVENTS, key) is None:
            return False
        await self._engine.writes.update(self._engine.served("", "v1", EVENTS), key, self._again, WRITE)
        return True

    def _again(self, event: Document) -> Document:
        return {**event, "count": event.get("count", 1) + 1, "lastTimestamp": timestamp(self._now())}

    async def _made(self, told: Told) -> None:
        served, now = self._engine.served("", "v1", EVENTS), self._now()
        # We are not asked at the door, and nobody would clear away what comes after the end.
        check_namespace_open(self._engine, served, told.about.namespace, told.about.name)
        event: Document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{told.about.name}.", "namespace": told.about.namespace},
            "involvedObject": msgspec.to_builtins(told.about),
            "type": told.type,
            "reason": told.reason,
            "message": told.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        outcome = await self._engine.writes.create(served, event, WRITE)
        self._names[told] = msgspec.json.decode(outcome.raw)["metadata"]["name"]
        if len(self._names) > MOST_KNOWN:
            self._names.popitem(last=False)
