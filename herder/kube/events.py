"""Tells people what was done to an object, as Events. Never waits, never fails: whoever tells goes on with its work.

The same told again (object, reason, message) becomes a series of one Event: how often, and when last. Each object may have 25
writes at once and then one in five minutes, as with client-go; repetitions above that are counted, and go with the next write.

What is told is less urgent than what is done. So it takes a share of the time only: where writes take long, because much is being
done, it waits longer between them, and comes a little later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api.meta import Identified
from herder.api.world import World, micro_timestamp
from herder.kube.bucket import Bucket, Rate
from herder.kube.client import Client, Document
from herder.kube.errors import AlreadyExists, KubeError, NotFound, ServerFailed, Unreachable
from herder.kube.metrics import EVENT_RESULTS, metrics_of
from herder.kube.resources import EVENTS, Key, reference, written

log = structlog.get_logger()
ABOUT_ONE_OBJECT = Rate(burst=25, per_second=1 / 300)
# Those told for longest ago are forgotten first: what they tell next is a new Event.
MOST_REMEMBERED = 4096
# A storm's: those of 2,500 machines that start at once, some 10 MB.
MOST_WAITING = 10_000
# About so many objects at once: one commit of the server is enough for all of them.
AT_ONCE = 32
# After that, as often as long as it took: a fifth of the time is for telling.
REST = 4.0
LONGEST_REST = 1.0
# client-go's: a series that was silent for so long is over.
SERIES_ENDS = 360.0
MOST_TRIES = 12
TRY_AGAIN = 10.0
LONGEST_NOTE = 1024
LONGEST_WORD = 128
LONGEST_NAME = 253
_EVENTS = written(EVENTS)


class Told(msgspec.Struct, frozen=True):
    """What makes two events the same one."""

    kind: str
    about: Key
    uid: str
    type: str
    reason: str
    action: str
    note: str


class Series(msgspec.Struct):
    """One Event object, and how much of it is written."""

    key: Key
    about: tuple[str, Key]  # its kind and its name
    document: Document
    count: int = 1
    written: int = 0
    last: float = 0.0
    last_time: str = ""


class Recorder:
    def __init__(
        self,
        client: Client,
        world: World,
        component: str,
        *,
        instance: str = "",
        registry: CollectorRegistry | None = None,
        about_one_object: Rate = ABOUT_ONE_OBJECT,
    ) -> None:
        """`component` is the reportingController, such as herder.dev/controllers; `instance` tells two of them apart."""
        self._client = client
        self._world = world
        self._component = component
        self._instance = (instance or component)[:LONGEST_WORD]
        self._rate = about_one_object
        self._clock = asyncio.get_running_loop().time
        self._series: OrderedDict[Told, Series] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, Key, str], Bucket] = OrderedDict()
        self._waiting: OrderedDict[Key, Series] = OrderedDict()
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        metrics = metrics_of(registry)
        self._results = {result: metrics.events.labels(component, result) for result in EVENT_RESULTS}

    def normal(self, thing: Identified, reason: str, message: str, *, action: str = "") -> None:
        self._tell("Normal", thing, reason, message, action)

    def warning(self, thing: Identified, reason: str, message: str, *, action: str = "") -> None:
        self._tell("Warning", thing, reason, message, action)

    async def run(self) -> None:
        """Writes what was told, in the order in which it was told about an object, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                began = self._clock()
                async with asyncio.TaskGroup() as group:
                    for series in self._next():
                        group.create_task(self._write(series))
                if not self._waiting:
                    self._idle.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(REST * (self._clock() - began), LONGEST_REST)):
                        await self._hurry.wait()

    def _next(self) -> list[Series]:
        """What has waited for longest, until there is a second one about the same object."""
        found: dict[tuple[str, Key], Series] = {}
        for series in self._waiting.values():
            if series.about in found or len(found) == AT_ONCE:
                break
            found[series.about] = series
        for series in found.values():
            del self._waiting[series.key]
        return list(found.values())

    async def wait_written(self, *, hurry: bool = False) -> None:
        """Until nothing waits to be written. `hurry`: nothing else is done any more, so it need not rest."""
        if hurry:
            self._hurry.set()
        await self._idle.wait()

    def _tell(self, type_: str, thing: Identified, reason: str, message: str, action: str) -> None:
        try:
            regarding = reference(thing)
            about = Key(thing.namespace, thing.name)
            told = Told(regarding["kind"], about, thing.uid, type_, _short(reason), _short(action or reason), _note(message))
            self._offer(told, self._observed(told, regarding))
        except Exception as error:
            # The caller's work matters more than what is told about it.
            self._results["lost"].inc()
            log.error("an event could not be told", reason=reason, exc_info=error)

    def _observed(self, told: Told, regarding: Document) -> Series:
        """The series that this belongs to, with this one counted."""
        now = self._clock()
        series = self._series.get(told)
        if series is not None and now - series.last < SERIES_ENDS:
            series.count += 1
            self._series.move_to_end(told)
        else:
            series = self._series[told] = self._new(told, regarding)
            self._series.move_to_end(told)
            if len(self._series) > MOST_REMEMBERED:
                self._series.popitem(last=False)
        series.last, series.last_time = now, micro_timestamp(self._world.now())
        return series

    def _offer(self, told: Told, series: Series) -> None:
        """To be written, unless that is under way already or would be too much."""
        if series.key in self._waiting:
            return
        if not self._bucket(told).take(self._clock()):
            self._results["limited"].inc()
        elif len(self._waiting) >= MOST_WAITING:
            self._results["overflowed"].inc()
        else:
            self._waiting[series.key] = series
            self._idle.clear()
            self._news.set()

    def _bucket(self, told: Told) -> Bucket:
        whose = (told.kind, told.about, told.uid)
        bucket = self._buckets.get(whose)
        if bucket is None:
            bucket = self._buckets[whose] = Bucket(self._rate, self._clock())
        self._buckets.move_to_end(whose)
        if len(self._buckets) > MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket

    def _new(self, told: Told, regarding: Document) -> Series:
        # Events about what is in no namespace are in this one.
        key = Key(told.about.namespace or "default", self._name(told.about.name))
        document: Document = {
            "metadata": {"name": key.name, "namespace": key.namespace},
            "eventTime": micro_timestamp(self._world.now()),
            "type": told.type,
            "reason": told.reason,
            "action": told.action,
            "note": told.note,
            "regarding": regarding,
            "reportingController": self._component,
            "reportingInstance": self._instance,
        }
        return Series(key, (told.kind, told.about), document)

    def _name(self, about: str) -> str:
        """The object's name and something that is never the same again."""
        end = self._world.uid().replace("-", "")[-16:]
        return f"{about[: LONGEST_NAME - len(end) - 1].rstrip('.-')}.{end}"

    async def _write(self, series: Series) -> None:
        """Tried for some minutes while nobody answers. What was told meanwhile is counted, and goes with it."""
        for attempt in range(MOST_TRIES):
            if attempt:
                await asyncio.sleep(TRY_AGAIN * (1 + self._world.random() / 4))
            count = series.count
            try:
                done = await (self._patch(series) if series.written else self._create(series))
            except (Unreachable, ServerFailed) as error:
                log.info("an event could not be written, will try again", object=str(series.key), error=str(error))
            except KubeError as error:
                self._results["refused"].inc()
                log.info("an event was refused", object=str(series.key), error=str(error))
                return
            except Exception as error:
                self._results["lost"].inc()
                log.error("an event could not be written", object=str(series.key), exc_info=error)
                return
            else:
                series.written = count
                self._results[done].inc()
                return
        self._results["lost"].inc()

    async def _create(self, series: Series) -> str:
        body = {**series.document, **({"series": _series(series)} if series.count > 1 else {})}
        try:
            await self._client.create(_EVENTS, body)
        except AlreadyExists:
            # The name is ours alone: an earlier try was done, only its answer was lost.
            if series.count > 1:
                await self._client.patch(_EVENTS, series.key, {"series": _series(series)})
        return "created"

    async def _patch(self, series: Series) -> str:
        try:
            await self._client.patch(_EVENTS, series.key, {"series": _series(series)})
        except NotFound:
            # It was old enough to go.
            return await self._create(series)
        return "patched"


def _series(series: Series) -> Document:
    return {"count": series.count, "lastObservedTime": series.last_time}


def _short(word: str) -> str:
    return word[:LONGEST_WORD]


def _note(message: str) -> str:
    """As many bytes as an Event takes."""
    raw = message.encode()
    return message if len(raw) <= LONGEST_NOTE else raw[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
