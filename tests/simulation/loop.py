"""An event loop whose time is virtual: when nobody has anything to do, it is at once as late as the next timer says.

Not looptime: that one lives inside pytest, and the benchmark and whoever replays a seed need the same loop outside of it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any

# So many rounds of the loop at one and the same moment are not work any more.
MOST_ROUNDS = 500_000


class Stuck(BaseException):
    """Nobody can be woken any more, or somebody is busy for ever. Not an Exception: nothing may take it for a fault."""


class _NoSockets(selectors.BaseSelector):
    """Waits for nothing but the time."""

    def __init__(self, advance: Callable[[float | None], None]) -> None:
        self._advance = advance
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._advance(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual_now = 0.0
        self._rounds = 0
        super().__init__(_NoSockets(self._advance))
        # That of the real clock is finer than what a number can tell after a year: a timer would be due, and never run.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual_now

    def _advance(self, seconds: float | None) -> None:
        if seconds is None:
            raise Stuck("everybody waits, and nothing is left that could wake anyone")
        if seconds > 0:
            self._virtual_now += seconds
            self._rounds = 0
            return
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise Stuck(f"{MOST_ROUNDS} rounds of work at {self._virtual_now:.3f} s, and no end of it: somebody is busy for ever")

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Here and now: a thread would escape the virtual time."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future
