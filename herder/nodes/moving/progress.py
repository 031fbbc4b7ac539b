"""The numbers of a copy as they are told: when they are of, and never less done than before."""

from __future__ import annotations

import datetime

import msgspec

from herder.api.kinds.migration_state import MigrationProgress


def dated(progress: MigrationProgress, before: MigrationProgress | None, now: float) -> MigrationProgress:
    known = before.percent if before is not None else None
    percent = max(progress.percent or 0, known or 0)
    moment = datetime.datetime.fromtimestamp(int(now), datetime.UTC)
    return msgspec.structs.replace(progress, percent=percent, last_update_time=moment)
