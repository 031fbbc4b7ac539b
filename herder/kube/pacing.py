"""How often a stream is read while much comes in: to wake up for an event costs more than the event.

A few small pieces within a short while are read as they come, so that a chain of controllers loses no time. When there are more,
the rest is left in the socket until the while is over, and read together. What comes in large pieces is a list, and never waits.
"""

from __future__ import annotations

WHILE = 0.010
WAKE_UPS = 2
# What is read so soon after a pause had been waiting for its end.
AT_ONCE = 0.001
# Less than a socket holds: nobody who writes is held up by one who waits so long.
SMALL = 32 * 1024


class Pace:
    def __init__(self) -> None:
        self._ends = 0.0
        self._spent = 0

    def pause(self, now: float, size: int) -> float:
        """How long to leave alone what comes next, after a piece of this size."""
        if now >= self._ends:
            # As long as something waits whenever a pause ends, one wake-up a while is enough.
            self._spent = WAKE_UPS - 1 if now < self._ends + AT_ONCE else 0
            self._ends = now + WHILE
        self._spent += 1
        return self._ends - now if self._spent >= WAKE_UPS and size < SMALL else 0.0
