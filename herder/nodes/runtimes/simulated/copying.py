"""Copying the memory of a guest that runs on: rounds of pre-copy, throttling, post-copy. Pure: time comes in as seconds."""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.api.kinds.migration_state import MigrationProgress, PolicySettings

FIRST_THROTTLE = 20
MORE_THROTTLE = 10
MOST_THROTTLE = 99
Mode = Literal["PreCopy", "PostCopy", "Paused"]


class Load(msgspec.Struct, frozen=True):
    """What the guest does to its memory."""

    memory: int
    dirty_rate: int = 0
    working_set: int = 0


class Copy(msgspec.Struct, frozen=True):
    """How far it is. A fluid model: within a round bytes flow at the bandwidth and pages are dirtied at their rate."""

    load: Load
    remaining: float  # of this round
    dirtied: float = 0.0  # since this round began: the next one
    transferred: float = 0.0
    iteration: int = 1
    throttle: int = 0
    mode: Mode = "PreCopy"
    best: float = 0.0  # share of the memory that has been over at some time: never runs backwards
    downtime: float | None = None  # seconds, once it is known
    done: bool = False


def begin(load: Load) -> Copy:
    return Copy(load, float(load.memory))


def round_ends_in(copy: Copy, bandwidth: float) -> float:
    """Seconds until something has to be decided."""
    return copy.remaining / bandwidth if bandwidth > 0 else float("inf")


def advance(copy: Copy, seconds: float, bandwidth: float, settings: PolicySettings, downtime_limit: float) -> Copy:
    """The state after these seconds; rounds that end meanwhile are decided as they end."""
    while not copy.done:
        ends = round_ends_in(copy, bandwidth)
        step = min(seconds, ends)
        copy = _flow(copy, step, bandwidth)
        if step < ends or bandwidth <= 0:
            return copy
        seconds -= step
        copy = _next_round(copy, bandwidth, settings, downtime_limit)
    return copy


def _flow(copy: Copy, seconds: float, bandwidth: float) -> Copy:
    sent = min(copy.remaining, bandwidth * seconds)
    remaining = copy.remaining - sent
    dirtied = min(float(copy.load.working_set), copy.dirtied + dirty_rate(copy) * seconds)
    share = 1.0 - (remaining + dirtied) / copy.load.memory if copy.load.memory else 1.0
    return msgspec.structs.replace(
        copy, remaining=remaining, dirtied=dirtied, transferred=copy.transferred + sent, best=max(copy.best, min(share, 0.99))
    )


def dirty_rate(copy: Copy) -> float:
    """A guest that stands still, or runs elsewhere already, dirties nothing here."""
    return copy.load.dirty_rate * (100 - copy.throttle) / 100 if copy.mode == "PreCopy" else 0.0


def _next_round(copy: Copy, bandwidth: float, settings: PolicySettings, limit: float) -> Copy:
    if copy.mode == "PostCopy" or copy.dirtied == 0:
        return _finished(copy, copy.downtime or 0.0)
    last = copy.dirtied / bandwidth
    if last <= limit or copy.mode == "Paused":
        sent = copy.transferred + copy.dirtied
        return _finished(msgspec.structs.replace(copy, transferred=sent, dirtied=0.0), (copy.downtime or 0.0) + last)
    throttle = copy.throttle
    if settings.allow_auto_converge and copy.iteration >= 2:
        throttle = min(MOST_THROTTLE, throttle + MORE_THROTTLE if throttle else FIRST_THROTTLE)
    return msgspec.structs.replace(copy, remaining=copy.dirtied, dirtied=0.0, iteration=copy.iteration + 1, throttle=throttle)


def _finished(copy: Copy, downtime: float) -> Copy:
    return msgspec.structs.replace(copy, done=True, remaining=0.0, best=1.0, downtime=downtime)


def to_post_copy(copy: Copy) -> Copy:
    """The guest goes on at the target; what is left follows it."""
    return msgspec.structs.replace(copy, mode="PostCopy", remaining=copy.remaining + copy.dirtied, dirtied=0.0, downtime=0.0)


def to_paused(copy: Copy) -> Copy:
    """The guest stands still until all is over."""
    return msgspec.structs.replace(copy, mode="Paused", remaining=copy.remaining + copy.dirtied, dirtied=0.0)


def to_running(copy: Copy) -> Copy:
    """The guest runs on, and writes again."""
    return msgspec.structs.replace(copy, mode="PreCopy") if copy.mode == "Paused" else copy


def progress(copy: Copy, bandwidth: float) -> MigrationProgress:
    left = copy.remaining + copy.dirtied
    return MigrationProgress(
        mode=copy.mode,
        total_bytes=copy.load.memory,
        transferred_bytes=round(copy.transferred),
        remaining_bytes=int(left),
        dirty_bytes_per_second=int(dirty_rate(copy)),
        bytes_per_second=int(bandwidth),
        iteration=copy.iteration,
        throttle_percent=copy.throttle,
        percent=int(copy.best * 100),
        estimated_seconds_left=_estimate(left, bandwidth - dirty_rate(copy)),
        downtime_ms=None if copy.downtime is None else int(copy.downtime * 1000),
    )


def _estimate(left: float, net: float) -> int | None:
    """None where it will never end as it goes now."""
    return int(left / net) if net > 0 else None
