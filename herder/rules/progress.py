"""Progress as people see it: a percentage that never runs backwards, and how long it will still take."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from herder.api.kinds.migration_state import MigrationProgress

PRE_COPY: Final = "PreCopy"
POST_COPY: Final = "PostCopy"
# Only the end itself is 100.
ALMOST = 99
# A guest that writes nearly as fast as it is copied: how much longer the rest takes is anybody's guess beyond this.
MOST_REPEATED = 0.95


def shown_progress(previous: MigrationProgress | None, raw: MigrationProgress, done: bool = False) -> MigrationProgress:
    """`raw` is what the hypervisor says now, `previous` what was shown before it of the same copy."""
    before = previous or MigrationProgress()
    if done:
        return msgspec.structs.replace(raw, percent=100, remaining_bytes=0, estimated_seconds_left=0, mode=raw.mode or before.mode)
    transferred = max(raw.transferred_bytes or 0, before.transferred_bytes or 0)
    left = _to_send(raw)
    whole = transferred + left
    percent = min(int(100 * transferred / whole), ALMOST) if whole else 0
    return msgspec.structs.replace(
        raw,
        # A guest that has begun at the target does not go back.
        mode=POST_COPY if before.mode == POST_COPY else raw.mode or before.mode,
        transferred_bytes=transferred,
        percent=max(percent, before.percent or 0),
        estimated_seconds_left=_seconds_left(raw, left),
    )


def _to_send(raw: MigrationProgress) -> float:
    """What remains, and what the guest will write meanwhile: that is sent again, and what it writes then, and so on."""
    return (raw.remaining_bytes or 0) / (1 - min(_repeated(raw), MOST_REPEATED))


def _repeated(raw: MigrationProgress) -> float:
    """The share of what is sent that has to be sent again."""
    if raw.mode == POST_COPY or not raw.dirty_bytes_per_second:
        return 0.0
    return raw.dirty_bytes_per_second / raw.bytes_per_second if raw.bytes_per_second else 1.0


def _seconds_left(raw: MigrationProgress, left: float) -> int | None:
    """None where nobody can tell: nothing is sent, or the guest writes faster than it is copied."""
    if not raw.remaining_bytes:
        return 0 if raw.remaining_bytes == 0 else None
    if not raw.bytes_per_second or _repeated(raw) >= 1:
        return None
    return math.ceil(left / raw.bytes_per_second)
