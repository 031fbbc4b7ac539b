"""How fast pods are evicted and machines are migrated, over all jobs together (seed 004: "a simple central flow control")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from herder.kube.bucket import Bucket, Rate
from herder.rules.herder_config import JobsConfig


class FlowControl:
    """Empty at the start: a new leader, or another rate, does not fill it."""

    def __init__(self, config: Callable[[], JobsConfig]) -> None:
        self._config = config
        self._clock = asyncio.get_running_loop().time
        self._rate = _rate(config())
        self._bucket = Bucket(self._rate, self._clock(), empty=True)
        # By the uid of a job: when its turn is. It keeps it until something holds it right then.
        self._turns: dict[str, float] = {}

    @property
    def turns(self) -> int:
        """How many are given and not used yet."""
        return len(self._turns)

    def wait(self, uid: str) -> float:
        """Seconds until the turn of this job; 0: it is now, and stays so until `done`."""
        rate = _rate(self._config())
        if rate != self._rate:
            self._rate, self._bucket = rate, Bucket(rate, self._clock(), empty=True)
            self._turns.clear()
        now = self._clock()
        if uid not in self._turns:
            self._turns[uid] = now + self._bucket.reserve(now)
        return max(0.0, self._turns[uid] - now)

    def done(self, uid: str) -> None:
        """It was used, or is not wanted any more."""
        self._turns.pop(uid, None)


def _rate(config: JobsConfig) -> Rate:
    return Rate(burst=config.evict_burst, per_second=config.evict_qps)
