"""How fast events may come. One broken controller must not fill the store, nor drown what others have to tell.

Two buckets must both have a token: that of the source and the object it talks about, and that of the namespace. What is refused
is lost, as with Kubernetes' own limit: whoever tells events never waits for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from herder.server.status import ApiError

Document = dict[str, Any]


class Rate(msgspec.Struct, frozen=True):
    """So many at once, then so many a second."""

    burst: int
    per_second: float


# One source about one object: client-go stops at 25, then one in five minutes. Nobody well-behaved comes near this.
ABOUT_ONE_OBJECT = Rate(100, 1.0)
# All of a namespace: a thousand machines may start at once in it, each with some events.
IN_ONE_NAMESPACE = Rate(10_000, 50.0)
# Those not heard of for longest are forgotten, which can only be to their advantage.
MOST_BUCKETS = 4096


class Buckets:
    def __init__(self, rate: Rate, now: Callable[[], float], most: int = MOST_BUCKETS) -> None:
        self._rate = rate
        self._now = now
        self._most = most
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def left(self, key: Hashable) -> float:
        """How many tokens there are at this moment."""
        tokens, at = self._left.get(key, (float(self._rate.burst), 0.0))
        # A clock that is set back gives nothing and takes nothing.
        return min(self._rate.burst, tokens + max(0.0, self._now() - at) * self._rate.per_second)

    def take(self, key: Hashable) -> None:
        self._left[key] = (self.left(key) - 1, self._now())
        self._left.move_to_end(key)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def __len__(self) -> int:
        return len(self._left)


class EventLimits:
    def __init__(self, now: Callable[[], float], about: Rate = ABOUT_ONE_OBJECT, inside: Rate = IN_ONE_NAMESPACE) -> None:
        self._about = Buckets(about, now)
        self._inside = Buckets(inside, now)

    def admit(self, event: Document) -> None:
        """Takes a token of each, or refuses. `event` is in its stored form."""
        namespace = event["metadata"].get("namespace", "")
        source = _source_and_object(event)
        if self._about.left(source) < 1:
            raise too_many(f"limit reached for events of {source[0] or 'one source'} about {_named(event)}")
        if self._inside.left(namespace) < 1:
            raise too_many(f"limit reached for events in the namespace {namespace}")
        self._about.take(source)
        self._inside.take(namespace)


def _source_and_object(event: Document) -> tuple[str, ...]:
    source, about = event.get("source") or {}, event.get("involvedObject") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return (component, host, *(about.get(part) or "" for part in ("apiVersion", "kind", "namespace", "name", "uid")))


def _named(event: Document) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind') or 'object'} {about.get('name') or ''}".strip()


def too_many(why: str) -> ApiError:
    """Without a time to come back: a client that waited for events would do nothing else."""
    return ApiError(429, "TooManyRequests", f"Too many requests: {why}")
