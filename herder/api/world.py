"""The world outside: the time, and fresh ids. Injected everywhere, so that a simulation can decide both."""

from __future__ import annotations

import random
import secrets
import time
import uuid
from datetime import date, timedelta
from functools import lru_cache
from typing import Protocol

# Kubernetes leaves out vowels and look-alikes, so that no random suffix spells a word.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
EPOCH = date(1970, 1, 1)


class World(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def random(self) -> float:
        """From 0 up to but not including 1."""
        ...

    def uid(self) -> str: ...

    def suffix(self) -> str:
        """The random end of a generated name."""
        ...


class RealWorld:
    def now(self) -> float:
        return time.time()

    def random(self) -> float:
        return random.random()

    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self) -> str:
        return "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))


def timestamp(seconds: float) -> str:
    """metav1.Time: RFC 3339, whole seconds, UTC."""
    return _whole_second(int(seconds))


@lru_cache(maxsize=16)
def _whole_second(seconds: int) -> str:
    """Hundreds of writes fall into the same second."""
    return f"{_in_utc(seconds)}Z"


def micro_timestamp(seconds: float) -> str:
    """metav1.MicroTime, as Leases carry it."""
    whole, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_in_utc(whole)}.{microseconds:06}Z"


def _in_utc(seconds: int) -> str:
    """Neither strftime nor isoformat, which take several times as long: every write has a time in it."""
    day, second = divmod(seconds, 86_400)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_day(day)}T{hour:02}:{minute:02}:{second:02}"


@lru_cache(maxsize=16)
def _day(number: int) -> str:
    return (EPOCH + timedelta(days=number)).isoformat()
