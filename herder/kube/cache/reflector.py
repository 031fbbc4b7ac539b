"""Keeps a table like the server's: a list, then a watch, for ever, whatever happens on the way.

A list is asked for as the beginning of a watch (`sendInitialEvents`): the server sends it object by object, and nothing can be
missed between the two. Where the server does not know that, pages are read first.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import structlog

from herder.api.meta import Identified
from herder.api.world import World
from herder.kube.cache import metrics
from herder.kube.cache.backoff import Backoff
from herder.kube.cache.collector import collector_off
from herder.kube.cache.fresh import Fresh
from herder.kube.cache.metrics import Counts
from herder.kube.cache.paging import list_in_pages
from herder.kube.cache.reading import Reader, read_mark
from herder.kube.cache.seen import Seen
from herder.kube.cache.stored import Stored
from herder.kube.cache.table import Table
from herder.kube.client import Client, Selection
from herder.kube.errors import ApiStatusError, Expired, KubeError, Unreadable
from herder.kube.resources import Resource

log = structlog.get_logger()
V = TypeVar("V", bound=Identified)
Event = tuple[str, bytes]

# The server ends a watch after some minutes, at another one for each client: connections move on to other servers by and by.
SHORTEST_WATCH = 300
# Bookmarks come about once a minute. A connection that is silent for much longer is taken for dead.
SILENCE = 180.0
# Watches send a bookmark two seconds before they end: with a short one, progress can be asked for.
PROGRESS_WATCH = 5
PROGRESS_PATIENCE = 15.0
# A watch that ends sooner than this, and brought nothing, was no use: the next one waits.
USEFUL = 1.0
# As many lists in a row must be older than what we have, before we believe that the server itself went back.
STALE_LISTS = 3
# After so many objects of a list, others get their turn.
BREATH = 500


class StaleList(KubeError):
    """A list that is older than what we have seen already: of a server that lags behind."""

    passing = True


_LIST_RESULTS: dict[type[Exception], str] = {Expired: metrics.EXPIRED, StaleList: metrics.STALE}


class Reflector(Generic[V]):
    def __init__(
        self,
        client: Client,
        resource: Resource[V],
        selection: Selection,
        world: World,
        table: Table[V],
        seen: Seen,
        counts: Counts,
        synced: Callable[[], None],
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._world = world
        self._table = table
        self._seen = seen
        self._counts = counts
        self._synced = synced
        self._reader = Reader(resource, counts.unreadable)
        self._backoff = Backoff(world)
        self._log = log.bind(resource=resource.qualified)
        self._listed = False
        self._streams_lists = True
        self._stale = 0
        self._fresh: Fresh[V] | None = None
        self._useful = False
        # Somebody waits to hear that this was reached: the watch is a short one, or was ended for one.
        self._wanted = 0
        self._short = False
        self._cut = False
        self._limit: asyncio.Timeout | None = None
        self._last_problem = ""

    async def run(self) -> None:
        while True:
            began = self._now()
            self._useful = False
            try:
                await self._follow()
            except (KubeError, TimeoutError) as problem:
                self._failed(problem)
                again = isinstance(problem, Expired | StaleList) or not self._worth_it(began)
            else:
                again = not self._worth_it(began)
            if again:
                await asyncio.sleep(self._backoff.take())
            else:
                self._backoff.reset()

    def ask_progress(self, version: int) -> None:
        """Ends the watch for short ones, one of which soon says how far it is: a busy server may end one without a word."""
        self._wanted = max(self._wanted, version)
        if self._limit is not None and self._fresh is None and not self._short and not self._limit.expired():
            self._cut = True
            self._limit.reschedule(self._now())

    async def _follow(self) -> None:
        """One connection: from the list, or from where the last one ended."""
        self._cut = False
        self._fresh = None if self._listed else Fresh(self._reader, self._table.objects)
        if self._fresh is not None and not self._streams_lists:
            version = await list_in_pages(
                self._client, self._resource, self._selection, self._asked_version(), self._fresh, SILENCE
            )
            await self._replace(self._fresh, version)
        self._short = self._wanted > self._seen.version and self._seen.awaited
        seconds = PROGRESS_WATCH if self._short else int(SHORTEST_WATCH * (1 + self._world.random()))
        try:
            async with asyncio.timeout(self._patience) as self._limit:
                await self._watch(self._limit, seconds)
        finally:
            self._limit = None
        self._counts.watches[metrics.ENDED].inc()

    async def _watch(self, limit: asyncio.Timeout, seconds: int) -> None:
        version = self._asked_version() if self._fresh is not None else str(self._seen.version)
        initial = self._fresh is not None
        events = self._client.watch_batches(self._resource, version, self._selection, seconds=seconds, initial=initial)
        async with contextlib.aclosing(events) as batches:
            async for batch in batches:
                await self._take(batch)
                if not self._cut and not self._short:
                    self._heard(limit)

    def _heard(self, limit: asyncio.Timeout) -> None:
        """Moving the limit for each event would cost more than the event: it is moved when that makes a difference."""
        ends, when = self._now() + SILENCE, limit.when()
        if when is None or ends > when + SILENCE / 10:
            limit.reschedule(ends)

    async def _take(self, batch: list[Event]) -> None:
        rest = iter(batch)
        if self._fresh is not None:
            with collector_off():
                version = self._take_list(rest)
            if version is not None:
                await self._replace(self._fresh, version)
        told: dict[str, int] = {}
        try:
            for kind, raw in rest:
                told[kind] = told.get(kind, 0) + 1
                self._take_event(kind, raw)
        finally:
            # Together: to count takes as long as to put an object into its place.
            for kind, number in told.items():
                self._count(kind, number)

    def _count(self, kind: str, number: int) -> None:
        if kind in self._counts.events:
            self._counts.events[kind].inc(number)
        else:
            self._log.warning("an event of an unknown type", type=kind)

    def _take_list(self, events: Iterator[Event]) -> int | None:
        """Its resourceVersion once all of it is there; what follows is left for the watch."""
        fresh = self._fresh
        if fresh is None:
            return None
        for kind, raw in events:
            if kind == "BOOKMARK":
                mark = read_mark(raw)
                if mark.ends_list:
                    return mark.version
            elif kind == "DELETED":
                fresh.remove(raw)
            else:
                fresh.add(raw)
        return None

    def _take_event(self, kind: str, raw: bytes) -> None:
        if kind not in metrics.EVENTS:
            return
        if kind == "BOOKMARK":
            self._seen.advance(read_mark(raw).version)
            self._useful = True
            return
        stored = self._reader.stored(raw)
        if stored is None:
            return
        if stored.version <= self._seen.version:
            self._counts.repeated.inc()  # events come in order: this one is from before
            return
        if kind == "DELETED":
            self._table.remove(stored.key)
        else:
            self._table.put(stored)
        self._seen.advance(stored.version)
        self._useful = True

    async def _replace(self, fresh: Fresh[V], version: int) -> None:
        """From what we had to what the list says, each key by one step. Who asks meanwhile sees some of both: that is why its
        resourceVersion counts as seen only at the end."""
        if version < self._floor():
            self._stale += 1
            raise StaleList(f"the list is of resourceVersion {version}, but {self._seen.version} was seen already")
        gone = [key for key in self._table.objects if key not in fresh.objects]
        for number, key in enumerate(gone):
            self._table.remove(key)
            if number % BREATH == BREATH - 1:
                await asyncio.sleep(0)
        await self._put_all(list(fresh.objects.values()))
        self._fresh = None
        self._stale = 0
        self._listed = True
        self._counts.lists[metrics.LISTED].inc()
        self._wanted = 0
        self._seen.start_again(version)
        self._last_problem = ""
        self._synced()

    async def _put_all(self, objects: list[Stored[V]]) -> None:
        for start in range(0, len(objects), BREATH):
            with collector_off():
                for stored in objects[start : start + BREATH]:
                    self._table.put(stored)
            await asyncio.sleep(0)

    def _floor(self) -> int:
        """Lists must not be older than what we have seen; unless the server, asked again and again, has nothing newer."""
        return self._seen.version if self._stale < STALE_LISTS else 0

    def _asked_version(self) -> str:
        """Without one, the newest state there is."""
        return str(self._floor() or "")

    def _failed(self, problem: KubeError | TimeoutError) -> None:
        if isinstance(problem, ApiStatusError) and _is_too_large(problem):
            self._stale = STALE_LISTS
        if not self._listed:
            self._list_failed(problem)
        else:
            self._watch_failed(problem)
        self._say(type(problem).__name__, str(problem) or f"nothing was heard of the server for {self._patience:.0f} s")

    def _list_failed(self, problem: KubeError | TimeoutError) -> None:
        if self._streams_lists and isinstance(problem, ApiStatusError) and problem.code in (400, 422):
            self._streams_lists = False
            self._useful = True  # in that something was learned: the pages can be asked for at once
        self._counts.lists[_LIST_RESULTS.get(type(problem), metrics.FAILED)].inc()

    def _watch_failed(self, problem: KubeError | TimeoutError) -> None:
        if isinstance(problem, Expired | Unreadable):
            self._listed = False
        if isinstance(problem, TimeoutError):
            result = metrics.ENDED if self._cut else metrics.SILENT
        else:
            result = metrics.EXPIRED if isinstance(problem, Expired) else metrics.BROKEN
        self._counts.watches[result].inc()

    def _say(self, kind: str, problem: str) -> None:
        """Each kind of trouble once, until there is another or all is well: a server that restarts breaks off, then refuses."""
        if kind != self._last_problem and not self._cut:
            self._log.warning("the cache lost its server and tries again", problem=problem)
        self._last_problem = kind

    def _worth_it(self, began: float) -> bool:
        return self._useful or self._cut or self._now() - began >= USEFUL

    @property
    def _patience(self) -> float:
        return PROGRESS_PATIENCE if self._short else SILENCE

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _is_too_large(problem: ApiStatusError) -> bool:
    """The server has not come as far as what we ask for, and says so."""
    causes = problem.details.get("causes") or ()
    return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)
