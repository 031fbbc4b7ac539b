"""The world outside: the time, and fresh ids. Injected everywhere, so that a simulation can decide both."""

from __future__ import annotations

import random
import secrets
import time
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

# Kubernetes leaves out vowels and look-alikes, so that no random suffix spells a word.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5


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
    return _in_utc(seconds, "seconds")


def micro_timestamp(seconds: float) -> str:
    """metav1.MicroTime, as Leases carry it."""
    return _in_utc(seconds, "microseconds")


def _in_utc(seconds: float, precision: str) -> str:
    """Not strftime, which takes several times as long: every write has a time in it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision)[: -len("+00:00")] + "Z"
