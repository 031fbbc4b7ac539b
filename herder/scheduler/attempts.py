"""What placing pods and placing reservations share: whose turn it is, who waits for what, and the writes that go out beside the
decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from herder.kube.errors import KubeError
from herder.kube.kit import Kit
from herder.kube.resources import Key
from herder.scheduler.line import Line
from herder.scheduler.metrics import scheduler_metrics_of
from herder.scheduler.waiting import Waiter, Waiting

log = structlog.get_logger()
# Writes that are on their way at once. More would only wait at the API server.
MOST_WRITES = 64
# Priority and time of creation.
Rank = tuple[int, float]


class Attempts:
    def __init__(self, kit: Kit, rank_of: Callable[[Key], Rank | None], undo: Callable[[Key], None]) -> None:
        """`rank_of`: None for what is not ours to place, or not any more. `undo`: what was assumed of it is not so."""
        self._rank_of = rank_of
        self._undo = undo
        self.line = Line()
        self.waiting = Waiting()
        self.metrics = scheduler_metrics_of(kit.registry)
        # Who leads now counts them.
        kit.at_end(lambda: self.metrics.waiting.set(0))
        self._slots = asyncio.Semaphore(MOST_WRITES)
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def next(self) -> Key:
        """Whose turn it is, with the slot of one write: taken by `write`, or given back by `release`."""
        await self._slots.acquire()
        return await self.line.get()

    def release(self) -> None:
        self._slots.release()

    def end(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    def forget(self, key: Key) -> None:
        """It is placed, gone, or somebody else's."""
        self.line.forget(key)
        self.waiting.remove(key)
        self._count_waiting()

    def wait(self, waiter: Waiter, said: Coroutine[Any, Any, object]) -> None:
        """It waits from now on, so that no event is missed; but not where nobody has heard of it in the end: nothing would ever
        come of that."""
        self.waiting.add(waiter)
        self._count_waiting()
        self.write(self._say(waiter, said))

    def wake(self, waiters: list[Waiter], *, at_once: bool = False) -> None:
        """Those that wait no longer are looked at again. `at_once`: without waiting for the end of their backoff."""
        for waiter in waiters:
            rank = self._rank_of(waiter.key)
            if rank is not None:
                (self.line.add if at_once else self.line.add_later)(waiter.key, *rank)
        self._count_waiting()

    def again(self, key: Key, result: str) -> None:
        self.metrics.attempts[result].inc()
        self.line.failed(key)
        rank = self._rank_of(key)
        if rank is not None:
            self.line.add_later(key, *rank)

    async def _say(self, waiter: Waiter, said: Coroutine[Any, Any, object]) -> None:
        try:
            await said
        except Exception as error:
            report("what a pod waits for could not be written, will be tried again", waiter.key, error)
            if self.waiting.get(waiter.key) is waiter:
                self.waiting.remove(waiter.key)
                self._count_waiting()
                self._undo(waiter.key)
                self.again(waiter.key, "error")

    def write(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks[task] = None
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._slots.release()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            passing = isinstance(error, KubeError) and error.passing
            log.log(20 if passing else 40, "the scheduler could not write", error=str(error), exc_info=None if passing else error)

    def _count_waiting(self) -> None:
        self.metrics.waiting.set(self.waiting.pods)


def report(what: str, key: Key, error: Exception) -> None:
    """What passes is no mistake of ours."""
    ours = not isinstance(error, KubeError)
    log.log(40 if ours else 20, what, key=str(key), error=str(error), exc_info=error if ours else None)
