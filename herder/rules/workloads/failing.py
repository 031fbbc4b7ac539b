"""Pods that fail as soon as a node has them: what follows for those that would be made in their place.

A pod of a ReplicaSet runs for ever. One that has failed within seconds was refused by its node, and so will be the next, until
somebody changes something. Kubernetes' own ReplicaSets make the next one at once, as fast as nodes refuse them; its DaemonSets wait
twice as long each time, and that is what is done here.

All of it follows from the pods that are there: a failed one keeps its place taken for a while. Whoever deletes it asks for the next
one now.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import msgspec

from herder.api.backoff import doubled
from herder.api.core import Pod

# Seconds.
SOON = 10.0
FIRST = 1.0
LONGEST = 300.0
# Failures that lie further apart than this have nothing to do with each other.
FORGOTTEN = 600.0


class _Failure(msgspec.Struct, frozen=True):
    created: float
    ended: float


def places_taken(pods: Iterable[Pod], now: float) -> list[float]:
    """For each failed pod whose place is not to be filled yet, in how many seconds it is."""
    failures = sorted((_failure(pod, now) for pod in pods if failed_soon(pod)), key=lambda one: (one.created, one.ended))
    # Until when each keeps its place, with how often in a row that was, and when it failed.
    waiting: list[tuple[float, int, float]] = []
    last: dict[int, float] = {}
    for failure in failures:
        while waiting and waiting[0][0] <= failure.created:
            _, row, ended = heapq.heappop(waiting)
            last[row] = max(ended, last.get(row, ended))
        # One that was made when another's time was over may be in its place. Those of one batch are not: they fail together, once.
        before = (row for row, ended in last.items() if failure.created - ended <= FORGOTTEN)
        row = 1 + max(before, default=-1)
        heapq.heappush(waiting, (failure.ended + doubled(FIRST, LONGEST, row), row, failure.ended))
    return sorted(until - now for until, _, _ in waiting if until > now)


def seconds_kept(pod: Pod, row: int, now: float) -> float:
    """Of one pod whose name is used again: in how many seconds the next may come. `row`: how often in a row it failed so before."""
    return max(0.0, _failure(pod, now).ended + doubled(FIRST, LONGEST, row) - now) if failed_soon(pod) else 0.0


def failed_soon(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and not pod.being_deleted and _ended(pod) - _began(pod) < SOON


def _failure(pod: Pod, now: float) -> _Failure:
    """A node whose clock is wrong keeps no place for longer: the server's own time counts then."""
    created, ended = _created(pod), _ended(pod)
    return _Failure(created, ended if created <= ended <= now else created)


def _created(pod: Pod) -> float:
    made = pod.metadata.creation_timestamp
    return made.timestamp() if made is not None else 0.0


def _began(pod: Pod) -> float:
    """On its node: how long it waited for one does not count."""
    began = pod.status.start_time
    return began.timestamp() if began is not None else _created(pod)


def _ended(pod: Pod) -> float:
    over = [one.state.terminated for one in pod.status.container_statuses]
    times = [one.finished_at.timestamp() for one in over if one is not None and one.finished_at is not None]
    return max(times, default=_began(pod))
