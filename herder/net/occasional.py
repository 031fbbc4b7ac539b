"""What anybody can make us say: said at once, and then no more than once in a while, with how often it was left unsaid."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

EVERY = 30.0


class Occasional:
    def __init__(self, say: Callable[..., Any], seconds: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        """`say` is a method of a logger."""
        self._say = say
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")
        self._unsaid = 0

    def __call__(self, event: str, **fields: Any) -> None:
        now = self._clock()
        if now < self._next:
            self._unsaid += 1
            return
        self._next = now + self._seconds
        more = {"unsaid": self._unsaid} if self._unsaid else {}
        self._unsaid = 0
        self._say(event, **fields, **more)
