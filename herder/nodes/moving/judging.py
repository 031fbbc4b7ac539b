"""One copy as it is judged: what was seen of it so far, and what to do next."""

from __future__ import annotations

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Moved
from herder.rules.convergence import Go, Sample, Track, Verdict, judge, observed


class Judge:
    """What it remembers is lost with the agent: then the patience for progress begins anew, and the deadline does not."""

    def __init__(self, settings: PolicySettings) -> None:
        self._settings = settings
        self._track: Track | None = None

    def look(self, moved: Moved, memory: int, now: float, no_post_copy: str) -> Verdict:
        """`no_post_copy`: why it cannot be had, though it is allowed."""
        progress = moved.progress
        if progress is None or moved.state != "UnderWay":
            return Go()
        sample = Sample(progress.remaining_bytes or 0, progress.mode or "PreCopy", progress.iteration or 0)
        if progress.remaining_bytes is not None:
            self._track = observed(self._track, sample, now)
        return judge(self._settings, memory, moved.began_at, self._track, now, no_post_copy)
