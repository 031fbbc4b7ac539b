"""What a running migration should do next: go on, switch to post-copy, pause the guest, or give up.

Two clocks run. The deadline (completionTimeoutPerGiB) is for a guest that writes memory faster than it can be sent: when it is
over, post-copy or a pause end the copy for sure, where they are allowed. The progress timeout is for a copy that does not get on.
Memory is sent in passes, each of what was written during the one before, so what remains goes up and down. A copy gets on as long
as a pass that is smaller than all before it shrinks. A pass that shrinks but is no smaller shows only that the connection lives:
then waiting makes sense where the deadline will bring something better than giving up.
"""

from __future__ import annotations

from typing import Final

import msgspec

from herder.api import reasons
from herder.api.kinds.migration_state import MigrationMode, PolicySettings
from herder.rules.progress import POST_COPY, PRE_COPY
from herder.rules.progress import shown_progress as shown_progress

GIB: Final = 1024**3


class Sample(msgspec.Struct, frozen=True):
    """What the hypervisor says of a copy at one moment."""

    remaining: int
    mode: MigrationMode = PRE_COPY
    # The pass; 0 where nobody counts them.
    iteration: int = 0


class Track(msgspec.Struct, frozen=True):
    """All that has to be remembered of the samples so far."""

    mode: MigrationMode
    iteration: int
    # Of this pass: the most and the least that remained.
    largest: int
    least: int
    # The smallest pass of those that are over.
    smallest_pass: int | None
    # When what remains last fell at all, and when in a pass that was smaller than all before.
    fell_at: float
    progressed_at: float


class Go(msgspec.Struct, frozen=True):
    """Nothing to do now. `next_look`: when time alone may change that; None where it cannot."""

    next_look: float | None = None


class StartPostCopy(msgspec.Struct, frozen=True):
    message: str


class PauseGuest(msgspec.Struct, frozen=True):
    message: str


class Abort(msgspec.Struct, frozen=True):
    reason: str
    message: str


Verdict = Go | StartPostCopy | PauseGuest | Abort


def observed(track: Track | None, sample: Sample, now: float) -> Track:
    """What is known after one more sample. In another mode everything starts anew."""
    if track is None or track.mode != sample.mode:
        return Track(sample.mode, sample.iteration, sample.remaining, sample.remaining, None, now, now)
    if sample.iteration > track.iteration:
        smallest = track.largest if track.smallest_pass is None else min(track.smallest_pass, track.largest)
        progressed = now if sample.remaining < smallest else track.progressed_at
        return Track(sample.mode, sample.iteration, sample.remaining, sample.remaining, smallest, now, progressed)
    if sample.remaining >= track.least:
        return msgspec.structs.replace(track, largest=max(track.largest, sample.remaining))
    smaller = track.smallest_pass is None or track.largest < track.smallest_pass
    progressed = now if smaller else track.progressed_at
    return msgspec.structs.replace(track, least=sample.remaining, fell_at=now, progressed_at=progressed)


def deadline(settings: PolicySettings, memory_bytes: int, started_at: float) -> float | None:
    """When the time for the copy is over; None where it never is."""
    per_gib = settings.completion_timeout_per_gib or 0
    return started_at + per_gib * gib(memory_bytes) if per_gib else None


def gib(memory_bytes: int) -> int:
    """Rounded up: a guest of 1.5 GiB has the time of two."""
    return -(-memory_bytes // GIB)


def without_post_copy(settings: PolicySettings) -> PolicySettings:
    """For a target that cannot take part in it. All else stays: who allowed post-copy has a guest that may be paused, too, unless
    somebody said otherwise."""
    disruption = settings.allow_workload_disruption
    allowed = settings.allow_post_copy if disruption is None else disruption
    return msgspec.structs.replace(settings, allow_post_copy=False, allow_workload_disruption=allowed)


def judge(
    settings: PolicySettings, memory_bytes: int, started_at: float, track: Track | None, now: float, no_post_copy: str = ""
) -> Verdict:
    """`settings` are effective ones. `track` is None before the first sample. `no_post_copy`: why that cannot be had, though it is
    allowed; empty where it can."""
    if no_post_copy:
        settings = without_post_copy(settings)
    mode = track.mode if track is not None else PRE_COPY
    if mode == POST_COPY:
        # The guest runs at the target already: there is no way back.
        return Go()
    over = deadline(settings, memory_bytes, started_at) if mode == PRE_COPY else None
    if over is not None and now >= over:
        return _when_over(settings, memory_bytes, int(over - started_at), no_post_copy)
    stuck = _stuck_at(settings, track, started_at, over)
    if stuck is not None and now >= stuck:
        return _no_progress(settings, track)
    return Go(min((time for time in (over, stuck) if time is not None), default=None))


def _when_over(settings: PolicySettings, memory_bytes: int, seconds: int, no_post_copy: str) -> Verdict:
    memory = gib(memory_bytes)
    time = f"the copy did not end within {seconds} s (completionTimeoutPerGiB {settings.completion_timeout_per_gib} x {memory} GiB)"
    if settings.allow_post_copy:
        return StartPostCopy(f"{time}: the guest goes on at the target, and the rest of its memory follows")
    if settings.allow_workload_disruption:
        return PauseGuest(f"{time}: the guest is paused until the rest of its memory is sent")
    lacks = "neither allowPostCopy nor allowWorkloadDisruption is set"
    if no_post_copy:
        lacks = f"allowWorkloadDisruption is not set, while post-copy, which is allowed, cannot be had: {no_post_copy}"
    return Abort(reasons.COMPLETION_TIMEOUT, f"{time}, and {lacks}; the guest still runs at the source")


def _stuck_at(settings: PolicySettings, track: Track | None, started_at: float, over: float | None) -> float | None:
    patience = settings.progress_timeout or 0
    if not patience:
        return None
    if track is None:
        return started_at + patience
    ends_well = over is not None and (settings.allow_post_copy or settings.allow_workload_disruption)
    return (track.fell_at if ends_well else track.progressed_at) + patience


def _no_progress(settings: PolicySettings, track: Track | None) -> Abort:
    left = f"{track.least} bytes remain, and that did not fall" if track is not None else "nothing was sent"
    said = f"{left} for {settings.progress_timeout} s (progressTimeout); the guest still runs at the source"
    return Abort(reasons.NO_PROGRESS, said)
