"""How often a stream is read while much comes in: to wake up for an event costs more than the event.

A few small pieces within a short while are read as they come, so that a chain of controllers loses no time. When there are more,
the rest is left in the socket until the while is over, and read together; as long as that goes on, the whiles become longer. What
comes in large pieces is a list, and never waits.
"""

from __future__ import annotations

WHILE, LONGEST, GROWTH = 0.010, 0.025, 1.5
WAKE_UPS = 2
# What is read so soon after a pause had been waiting for its end.
AT_ONCE = 0.001
# Less than a socket holds: nobody who writes is held up by one who waits so long.
SMALL = 128 * 1024


class Pace:
    def __init__(self) -> None:
        self._while = WHILE
        self._ends = 0.0
        self._spent = 0
        self._paused_until = 0.0

    def pause(self, now: float, size: int) -> float:
        """How long to leave alone what comes next, after a piece of this size."""
        if now >= self._ends:
            self._next_while(now)
        self._spent += 1
        return self._ends - now if self._spent >= WAKE_UPS and size < SMALL else 0.0

    def over(self, now: float) -> None:
        """A pause has ended: timers are late."""
        self._paused_until = now

    def _next_while(self, now: float) -> None:
        """As long as something waits whenever a pause ends, one wake-up a while is enough."""
        busy = now < self._paused_until + AT_ONCE
        self._while = min(self._while * GROWTH, LONGEST) if busy else WHILE
        self._spent = WAKE_UPS - 1 if busy else 0
        self._ends = now + self._while
