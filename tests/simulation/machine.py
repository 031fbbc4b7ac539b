"""A process that can be killed at any moment: its tasks end where they stand, its memory is gone, and it may be started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from tests.simulation.loop import VirtualLoop
from tests.simulation.trace import Trace
from tests.simulation.worlds import SimulatedWorld

RESTART_AFTER = 1.0
Main = Callable[["Machine"], Coroutine[Any, Any, None]]
_current: ContextVar[Machine | None] = ContextVar("machine", default=None)


class Machine:
    def __init__(self, loop: VirtualLoop, world: SimulatedWorld, trace: Trace, name: str, main: Main) -> None:
        self.name = name
        self.world = world
        self.lives = 0
        self.alive = False
        # Killed, or ended by itself: is it started again?
        self.restarts = True
        self.on_death: Callable[[], None] = lambda: None
        self._loop = loop
        self._trace = trace
        self._main = main
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self) -> None:
        if self.alive:
            return
        self.alive = True
        self.lives += 1
        self._trace.add(self.name, f"starts, life {self.lives}")
        self.spawn(self._live(self.lives))

    async def _live(self, life: int) -> None:
        """A main that ends, well or not, ends the process."""
        try:
            await self._main(self)
            why = "ended"
        except Exception as error:
            why = f"failed: {_told(error)}"
        if self.alive and self.lives == life:
            self.crash(why)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task of this machine; so are all the tasks that it starts."""
        context: Context = copy_context()
        context.run(_current.set, self)
        return self._loop.create_task(work, context=context)

    def crash(self, why: str = "killed", restart_after: float = RESTART_AFTER) -> None:
        """At once: nothing that it still wanted to say gets out."""
        if not self.alive:
            return
        self.alive = False
        self._trace.add(self.name, why)
        self.on_death()
        doomed, self._tasks = self._tasks, {}
        for task in doomed:
            task.cancel()
        if self.restarts:
            self._loop.call_later(restart_after, self.start)

    def own(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))


def _told(error: BaseException) -> str:
    """Of a group what is in it: that something failed in a group says nothing."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_told(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"


def owned_tasks(loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> asyncio.Task[Any]:
    """The loop's task factory: each task belongs to the machine that started it."""
    task = asyncio.Task(work, loop=loop, context=context)
    machine = _current.get() if context is None else context.get(_current)
    if machine is not None:
        machine.own(task)
    return task
