"""The queue of a controller: names of objects to look at, each with one worker at a time.

It behaves as client-go's workqueue. A name that is added twice is looked at once; one that is added while it is looked at is
looked at once more afterwards. One that is added ahead is looked at before all that were not. All waiting is on the event loop's
own time, with one timer for all delayed names, and all orders are those in which things were added: under virtual time the same
seed gives the same trace.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import heapq
import itertools
from collections import deque
from collections.abc import Callable

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.backoff import doubled
from herder.api.world import World
from herder.kube.bucket import Bucket, Rate
from herder.kube.metrics import metrics_of
from herder.kube.resources import Key

# Replaced times that are kept until they are met.
MOST_REPLACED = 64


class Backoff(msgspec.Struct, frozen=True):
    """How long a name that failed has to wait: doubled with each failure, and stretched a little at random, so that those which
    failed together do not come back together. The overall rate keeps thousands of them from coming at once; it is ten times
    client-go's, with which five thousand names that failed once need eight minutes to be tried again."""

    first: float = 0.005
    longest: float = 1000.0
    spread: float = 0.1
    overall: Rate = Rate(burst=1000, per_second=100.0)

    def after(self, failures: int) -> float:
        return doubled(self.first, self.longest, failures)


class Closed(Exception):
    """The queue is closed and empty."""


class Queue:
    def __init__(
        self, world: World, name: str = "", *, registry: CollectorRegistry | None = None, backoff: Backoff | None = None
    ) -> None:
        self._world = world
        self._clock = asyncio.get_running_loop().time
        self._backoff = backoff or Backoff()
        self._overall = Bucket(self._backoff.overall, self._clock())
        # When each name was added that wants to be looked at; those that nobody works on are also in the line.
        self._wanted: dict[Key, float] = {}
        self._line: deque[Key] = deque()
        # Those that go first, in a line of their own; and which names these are, also while they are worked on.
        self._ahead: deque[Key] = deque()
        self._hurried: set[Key] = set()
        self._working: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._delayed = _Delayed(self.add, self._clock)
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._closed = False
        metrics = metrics_of(registry)
        self._adds, self._retries = metrics.adds.labels(name), metrics.retries.labels(name)
        self._queued, self._worked = metrics.queued.labels(name), metrics.worked.labels(name)
        metrics.queues.watch(name, self)
        self._forget_metrics = functools.partial(metrics.queues.forget, name, self)

    def __len__(self) -> int:
        """How many wait for a worker. Those that are delayed do not yet."""
        return len(self._line) + len(self._ahead)

    def add(self, key: Key) -> None:
        if self._closed or key in self._wanted:
            return
        self._adds.inc()
        self._wanted[key] = self._clock()
        self._idle.clear()
        if key not in self._working:
            self._enter(key)

    def add_ahead(self, key: Key) -> None:
        """Before whoever waits already: for the few that others wait for."""
        if self._closed or key in self._hurried:
            return
        self._hurried.add(key)
        if key in self._wanted and key not in self._working:
            self._line.remove(key)
            self._ahead.append(key)
        self.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Once, after this time. Of several times for one name the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
        else:
            self._delayed.put(key, self._clock() + seconds)

    def add_backoff(self, key: Key, at_least: float = 0.0) -> None:
        """After a failure: later each time, until it is forgotten."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._retries.inc()
        own = self._backoff.after(failures) * (1 + self._backoff.spread * self._world.random())
        self.add_after(key, max(own, at_least, self._overall.reserve(self._clock())))

    def forget(self, key: Key) -> None:
        """It went well: the next failure is a first one."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> Key:
        """The one that has waited longest. It is the caller's alone until `done`. Raises Closed when no more will come."""
        while not len(self):
            if self._closed and not self._working:
                raise Closed
            await self._wait()
        key = (self._ahead or self._line).popleft()
        self._hurried.discard(key)
        now = self._clock()
        self._queued.observe(now - self._wanted.pop(key))
        self._working[key] = now
        return key

    def done(self, key: Key) -> None:
        began = self._working.pop(key)
        self._worked.observe(self._clock() - began)
        if key in self._wanted:
            self._enter(key)
        if not self._working and not len(self):
            self._idle.set()
            if self._closed:
                self._wake_all()

    def close(self) -> None:
        """Takes no more. What waits is still handed out, what is delayed is not."""
        self._closed = True
        self._delayed.clear()
        self._wake_all()

    def stop_measuring(self) -> None:
        """At the end of a term: nobody works on what is left, and it is no depth any more. What was counted stays."""
        self._forget_metrics()

    async def wait_drained(self) -> None:
        """Until nothing waits and nothing is worked on."""
        await self._idle.wait()

    def working_seconds(self) -> list[float]:
        now = self._clock()
        return [now - began for began in self._working.values()]

    def _enter(self, key: Key) -> None:
        (self._ahead if key in self._hurried else self._line).append(key)
        self._wake_one()

    async def _wait(self) -> None:
        """Woken, not handed a name: one that is cancelled at that very moment takes nothing with it."""
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._getters.remove(getter)
            if len(self) and not getter.cancelled():
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._getters)):
            self._wake_one()


class _Delayed:
    """Names with a time: one heap, one timer. A time that was replaced by an earlier one stays in the heap until it is met, or
    there are more of these than of others."""

    def __init__(self, fire: Callable[[Key], None], clock: Callable[[], float]) -> None:
        self._fire = fire
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def put(self, key: Key, when: float) -> None:
        if when >= self._due.get(key, float("inf")):
            return
        self._due[key] = when
        heapq.heappush(self._heap, (when, next(self._order), key))
        if len(self._heap) > 2 * len(self._due) + MOST_REPLACED:
            self._heap = [one for one in self._heap if self._due.get(one[2]) == one[0]]
            heapq.heapify(self._heap)
        if self._heap[0][2] == key:
            self._set_timer()

    def clear(self) -> None:
        self._due.clear()
        self._heap.clear()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._ring) if self._heap else None

    def _ring(self) -> None:
        # The loop calls a little early, by no more than its clock's resolution: what the timer was set for is due.
        now = max(self._clock(), self._heap[0][0])
        while self._heap and self._heap[0][0] <= now:
            when, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self._fire(key)
        self._set_timer()
