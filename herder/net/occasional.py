"""What anybody can make us say: said at once, and then no more than once in a while, with how often it was left unsaid."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

EVERY = 30.0


class Occasional:
    def __init__(self, log: Any, level: str = "warning", clock: Callable[[], float] = time.monotonic) -> None:
        """`log` is a logger of structlog."""
        self._log = log
        self._level = level
        self._clock = clock
        self._next = float("-inf")
        self._unsaid = 0

    def __call__(self, event: str, **fields: Any) -> None:
        now = self._clock()
        if now < self._next:
            self._unsaid += 1
            return
        self._next = now + EVERY
        more = {"unsaid": self._unsaid} if self._unsaid else {}
        self._unsaid = 0
        getattr(self._log, self._level)(event, **fields, **more)
