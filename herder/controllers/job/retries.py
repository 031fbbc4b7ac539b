"""When evictions that were refused are tried again, by the uid of their job. Lost with the term: then each is tried at once."""

from __future__ import annotations

import asyncio

import msgspec

from herder.api.backoff import doubled

# Until a budget, or a server, that has refused an eviction is asked again; what it asks for itself counts where it is longer.
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


class _Refused(msgspec.Struct):
    times: int = 0
    # Not before these: by our own backoff, and by what the server asked for.
    retry_at: float = 0.0
    asked_at: float = 0.0


class Retries:
    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._refused: dict[str, _Refused] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def refused(self, uid: str, asked: float | None) -> float:
        """Seconds until it is tried again. `asked`: what the server said about that."""
        refused = self._refused.setdefault(uid, _Refused())
        backoff, now = doubled(FIRST_RETRY, LONGEST_RETRY, refused.times), self._clock()
        refused.times += 1
        refused.retry_at, refused.asked_at = now + backoff, now + (asked or 0.0)
        return self.wait(uid)

    def wait(self, uid: str) -> float:
        """Seconds; 0 where it may be tried. Whatever wakes the job meanwhile: writing down that it was refused is such a thing."""
        refused = self._refused.get(uid)
        return max(0.0, refused.retry_at - self._clock(), refused.asked_at - self._clock()) if refused is not None else 0.0

    def changed(self, uid: str) -> None:
        """What has refused it is another one by now. What the server asked for stays."""
        refused = self._refused.get(uid)
        if refused is not None:
            refused.retry_at = 0.0

    def forget(self, uid: str) -> None:
        self._refused.pop(uid, None)
