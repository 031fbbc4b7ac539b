"""The numbers of a copy as they are told: when they are of, and never less done than before."""

from __future__ import annotations

import datetime

import msgspec

from herder.api.kinds.migration_state import MigrationProgress
from herder.nodes.runtimes.base import Moved
from herder.rules.progress import shown_progress


def told_progress(moved: Moved, before: MigrationProgress | None, now: float) -> MigrationProgress | None:
    if moved.progress is None:
        return before
    shown = shown_progress(before, moved.progress, done=moved.state == "Completed")
    return msgspec.structs.replace(shown, last_update_time=datetime.datetime.fromtimestamp(int(now), datetime.UTC))
