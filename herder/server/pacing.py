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
        self._began = 0.0
        self._spent = 0
        self._waiting: list[Sleeper] = []

    def add(self, sleeper: Sleeper) -> None:
        self._waiting.append(sleeper)
        if len(self._waiting) > 1:
            return  # the first one has seen to it
        loop = asyncio.get_running_loop()
        now = loop.time()
        left = self._began + self._seconds - now
        if left <= 0:
            self._began, self._spent = now, 0
        if self._spent >= self._wake_ups:
            loop.call_later(left, self._next_while)
        else:
            # Not now: what is committed together comes together.
            loop.call_soon(self._wake_all)

    def _next_while(self) -> None:
        """It begins with what waited for it. As long as that is much, nobody is woken in between."""
        self._began, self._spent = asyncio.get_running_loop().time(), 0
        self._wake_all()

    def _wake_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._spent += len(waiting)
        for sleeper in waiting:
            sleeper.wake()
