"""A controller: told a name, it looks at the objects and makes them so. Work runs it: workers, outcomes, retries, metrics."""

from __future__ import annotations

import asyncio
import enum
import itertools
from typing import Literal, Protocol

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.errors import ApiStatusError, KubeError, NotFound
from herder.kube.failures import Failures, ReconcileTimeout
from herder.kube.metrics import RESULTS, metrics_of
from herder.kube.queue import Closed, Queue
from herder.kube.resources import Key

log = structlog.get_logger()
# A reconcile asks an API server a few things: one that takes this long hangs.
LIMIT = 300.0
# With the usual backoff these take a second or two.
TRIES_UNTIL_MISSED = 8
# Clocks are rounded: a look that comes a hair too early must not be followed by the next at the very same time, for ever.
SOONEST = 0.001


class Outcome(enum.Enum):
    DONE = "done"
    AGAIN = "again"


DONE: Literal[Outcome.DONE] = Outcome.DONE
AGAIN: Literal[Outcome.AGAIN] = Outcome.AGAIN


class Later(msgspec.Struct, frozen=True):
    """Look again when this time has passed, if nothing happens before: time alone would change the answer."""

    seconds: float


# DONE: nothing more to do until something changes. AGAIN: more to do, at the end of the line. An exception is the fourth
# outcome: tried again, ever more slowly.
Result = Outcome | Later


class Controller(Protocol):
    @property
    def name(self) -> str: ...

    async def reconcile(self, key: Key) -> Result:
        """Only a name: what is to be done follows from how things are, not from what happened."""
        ...


class Work:
    """A controller at work on its queue."""

    def __init__(
        self,
        controller: Controller,
        queue: Queue,
        workers: int = 1,
        *,
        world: World,
        registry: CollectorRegistry | None = None,
        limit: float = LIMIT,
        failures: Failures | None = None,
    ) -> None:
        """`failures` shows on the objects themselves what fails again and again."""
        self._failures = failures
        # What was last logged with its trace, by name: the same again is one line.
        self._traced: dict[Key, str] = {}
        self._controller = controller
        self._queue = queue
        self._workers = workers
        self._id = world.uid()[:8]
        self._numbers = itertools.count(1)
        self._limit = limit
        metrics = metrics_of(registry)
        self._results = {result: metrics.reconciles.labels(controller.name, result) for result in RESULTS}
        self._seconds = metrics.reconciled.labels(controller.name)

    async def run(self) -> None:
        """Until the queue is closed and empty. Cancelled, it leaves each reconcile at the next thing that it waits for."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except Closed:
                return
            try:
                await self._one(key)
            finally:
                self._queue.done(key)

    async def _one(self, key: Key) -> None:
        """With an id in every line that is logged from in here, so that the lines of one reconcile can be found. A worker has a
        context of its own, which nobody need tidy up: the next key is put in place of this one."""
        clock = asyncio.get_running_loop().time
        structlog.contextvars.bind_contextvars(
            controller=self._controller.name, key=str(key), reconcile=f"{self._id}-{next(self._numbers)}"
        )
        began = clock()
        try:
            result = await self._bounded(key)
            if self._failures is not None and result is not AGAIN:
                await self._failures.succeeded(key)
            self._finished(key, result)
        except Exception as error:
            self._failed(key, error)
            if self._failures is not None:
                await self._failures.failed(key, error)
        self._seconds.observe(clock() - began)

    async def _bounded(self, key: Key) -> Result:
        limit = asyncio.timeout(self._limit)
        try:
            async with limit:
                return await self._controller.reconcile(key)
        except TimeoutError as error:
            if limit.expired():
                raise ReconcileTimeout(f"the reconcile did not end within {self._limit:g} s") from error
            raise
        except asyncio.CancelledError as error:
            # Ours only when this worker is being cancelled. Else something that the reconcile waited for was.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError("something that the reconcile waited for was cancelled") from error

    def _finished(self, key: Key, result: Result) -> None:
        if result is AGAIN:
            # With backoff, as a failure: one that always says so must not keep a worker busy for ever.
            self._count("again")
            self._queue.add_backoff(key)
            return
        self._queue.forget(key)
        self._traced.pop(key, None)
        if isinstance(result, Later):
            self._count("later")
            self._queue.add_after(key, max(result.seconds, SOONEST) if result.seconds > 0 else 0.0)
        else:
            self._count("done")

    def _failed(self, key: Key, error: Exception) -> None:
        failures = self._queue.failures(key) + 1
        if _passes(error, failures):
            # The world's fault: no trace.
            self._count("passing")
            log.info("not now, will be tried again", error=str(error), reason=type(error).__name__, failures=failures)
        elif isinstance(error, ReconcileTimeout):
            self._count("timeout")
            log.error("a reconcile hung and was ended, will be tried again", error=str(error), failures=failures)
        else:
            self._count("error")
            log.error(
                "a reconcile failed, will be tried again", error=str(error), failures=failures, exc_info=self._news(key, error)
            )
        self._queue.add_backoff(key, _asked_to_wait(error))

    def _news(self, key: Key, error: Exception) -> Exception | None:
        """The error, for its trace; nothing where it is the same as before."""
        told = f"{type(error).__name__}: {error}"
        if self._traced.get(key) == told:
            return None
        self._traced[key] = told
        return error

    def _count(self, result: str) -> None:
        self._results[result].inc()


def _passes(error: Exception, failures: int) -> bool:
    """What is not found has gone while we looked, and our cache will hear of it; or it never was there, and never comes."""
    if isinstance(error, NotFound):
        return failures <= TRIES_UNTIL_MISSED
    return isinstance(error, KubeError) and error.passing


def _asked_to_wait(error: Exception) -> float:
    """What the server asks for, for example one that has too much to do."""
    return (error.retry_after or 0.0) if isinstance(error, ApiStatusError) else 0.0
