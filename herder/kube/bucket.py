"""A token bucket: so many at once, then so many a second. Times are the event loop's, so that setting a clock changes nothing."""

from __future__ import annotations

import msgspec


class Rate(msgspec.Struct, frozen=True):
    burst: int
    per_second: float


class Bucket:
    def __init__(self, rate: Rate, now: float, *, empty: bool = False) -> None:
        self._rate = rate
        self._tokens = 0.0 if empty else float(rate.burst)
        self._at = now

    def take(self, now: float) -> bool:
        """A token, if there is one."""
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Takes one that may still have to come; seconds until it is there."""
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate.per_second)

    def give_back(self) -> None:
        """One that was taken, and not needed after all."""
        self._tokens = min(self._rate.burst, self._tokens + 1)

    def _fill(self, now: float) -> None:
        self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.per_second)
        self._at = now
