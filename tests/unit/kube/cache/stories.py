"""Stories in virtual time that share one loop, and with it what is costly to start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.unit.kube.virtual import VirtualLoop

T = TypeVar("T")


class ThreadlessLoop(VirtualLoop):
    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """At once: the loop could not see that a thread is still busy."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Virtually:
    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=ThreadlessLoop)

    def __call__(self, main: Coroutine[Any, Any, T], limit: float = 24 * 3600.0) -> T:
        """Nothing may take longer than `limit` of virtual seconds."""
        return self._runner.run(asyncio.wait_for(main, limit))

    def close(self) -> None:
        self._runner.close()
