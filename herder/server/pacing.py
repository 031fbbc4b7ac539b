"""When those who watch are woken: at once while it is quiet, together while it is not.

To wake a watcher costs about the same for one event as for twenty: a task runs, a record is encrypted, a socket is written to. With
many writes a second that costs more than the writes themselves. So each short while has a few wake-ups to spend; when they are
spent, whoever has something to read waits for the end of it, which nobody can tell from the network's own delays.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

WHILE = 0.010
# A chain of controllers, each waiting for what the one before it wrote, stays below this.
WAKE_UPS = 10


class Sleeper(Protocol):
    def wake(self) -> None: ...


class Pace:
    """Whoever is added is woken once, soon; and not again before being added again."""

    def __init__(self, seconds: float = WHILE, wake_ups: int = WAKE_UPS) -> None:
        self._seconds = seconds
        self._wake_ups = wake_ups
        self._ends = 0.0
        self._spent = 0
        self._waiting: list[Sleeper] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, sleeper: Sleeper) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._ends:
            # Where the loop is late, so is the timer: those who wait for it have waited long enough.
            self._next_while()
        if self._spent < self._wake_ups:
            self._spent += 1
            sleeper.wake()  # it runs when this turn is over, and finds all that was committed together
            return
        self._waiting.append(sleeper)
        if self._timer is None:
            self._timer = loop.call_at(self._ends, self._next_while)

    def _next_while(self) -> None:
        """It begins with those who waited for it. As long as they are many, nobody is woken in between."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ends = asyncio.get_running_loop().time() + self._seconds
        waiting, self._waiting = self._waiting, []
        self._spent = len(waiting)
        for sleeper in waiting:
            sleeper.wake()
