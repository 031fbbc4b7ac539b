"""Answers that are kept for a moment, and how many questions strangers may cause: nobody but the API server has the answers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from herder.kube.bucket import Bucket, Rate

K = TypeVar("K")
V = TypeVar("V")
Clock = Callable[[], float]
MOST_ANSWERS = 1000
MOST_ADDRESSES = 1000


class Remembered(Generic[K, V]):
    """Those that have been kept for longest go first."""

    def __init__(self, seconds: float, clock: Clock, most: int = MOST_ANSWERS) -> None:
        self._seconds = seconds
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        until, value = self._kept.get(key, (float("-inf"), None))
        return value if self._clock() < until else None

    def keep(self, key: K, value: V) -> None:
        self._kept[key] = (self._clock() + self._seconds, value)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)


class Allowance:
    """How many questions may be asked in vain: for those at one address, and for all of them together."""

    def __init__(self, each: Rate, together: Rate, clock: Clock, most: int = MOST_ADDRESSES) -> None:
        self._each = each
        self._clock = clock
        self._most = most
        self._together = Bucket(together, clock())
        # Those not heard of for longest are forgotten, which can only be to their advantage; all together are still bounded.
        self._by_address: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, address: str) -> bool:
        own = self._by_address.pop(address, None) or Bucket(self._each, self._clock())
        self._by_address[address] = own
        if len(self._by_address) > self._most:
            self._by_address.popitem(last=False)
        return own.take(self._clock()) and self._together.take(self._clock())

    def give_back(self, address: str) -> None:
        """It was not in vain."""
        for bucket in (self._by_address.get(address), self._together):
            if bucket is not None:
                bucket.give_back()

    def __len__(self) -> int:
        return len(self._by_address)
